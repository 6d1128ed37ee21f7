// The page's templates and their slots.

export const slot = (element, name) => element.querySelector(`[data-slot="${name}"]`);

export const copyOf = (name) => document.getElementById(`template-${name}`).content.firstElementChild.cloneNode(true);

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Show a text, or hide its place when there is none. */
export function say(element, text) {
  setText(element, text);
  element.hidden = text === "";
}
