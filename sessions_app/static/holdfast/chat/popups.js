// What opens over the page: one at a time, closed by a click elsewhere and by Escape.

const popups = () => Array.from(document.querySelectorAll("details[data-role=popup]"));

export function watchPopups() {
  document.addEventListener("click", ({ target }) => {
    for (const popup of popups()) if (!popup.contains(target)) popup.open = false;
  });
  document.addEventListener("keydown", (event) => {
    const open = popups().find((popup) => popup.open);
    if (event.key !== "Escape" || open === undefined) return;
    // It closes this and stops nothing else.
    event.stopImmediatePropagation();
    open.open = false;
    open.querySelector("summary").focus();
  });
}
