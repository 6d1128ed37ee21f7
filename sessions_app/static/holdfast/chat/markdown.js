// Markdown of answers, shown while it streams. The text itself stays beside it, hidden: it is what counts.
//
// All that a model writes is hostile: markup in it is shown as text, links lead to the web only, pictures
// become links, and what the libraries made passes a list of what may be there.

const MAY_BE = {
  ALLOWED_TAGS: [
    ..."a b blockquote br code del em h1 h2 h3 h4 h5 h6 hr i li ol p pre s span strong".split(" "),
    ..."table tbody td th thead tr ul".split(" "),
  ],
  ALLOWED_ATTR: ["href", "class", "start", "align"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  ADD_URI_SAFE_ATTR: ["start", "align"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};
const CLASS = /^(?:language-[\w+#.-]{1,40}|hljs-[\w-]{1,40}_?)$/;
const LONGEST_COLOURED = 30000;

/** Load the libraries; null where they are not installed, and texts stay as they are. */
export async function loadMarkdown() {
  try {
    const [{ Marked }, { default: purify }, { default: colours }] = await Promise.all([
      import("../vendor/marked.js"),
      import("../vendor/purify.js"),
      import("../vendor/highlight.js"),
    ]);
    return new Markdown({ marked: new Marked({ gfm: true, breaks: true, renderer: RENDERER }), purify, colours });
  } catch (error) {
    console.warn("holdfast: answers are shown without formatting", error);
    return null;
  }
}

const escaped = (text) =>
  text.replace(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`);

const RENDERER = {
  html: ({ raw }) => escaped(raw),
  image: ({ href, text }) => `<a href="${escaped(href)}">${escaped(text || href)}</a>`,
  checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
};

export class Markdown {
  constructor({ marked, purify, colours }) {
    Object.assign(this, { marked, purify, colours });
    purify.addHook("afterSanitizeAttributes", keepInBounds);
  }

  /** The text as elements; `isFinal`: with colours, since it will not change again. */
  render(text, { isFinal }) {
    const fragment = this.purify.sanitize(this.marked.parse(text), MAY_BE);
    for (const code of fragment.querySelectorAll("pre > code")) this.#frame(code, { isFinal });
    for (const table of fragment.querySelectorAll("table")) wrap(table, "table-box");
    return fragment;
  }

  /** A code block with its language and a button to copy it. */
  #frame(code, { isFinal }) {
    const language = /language-(\S+)/.exec(code.className)?.[1] ?? "";
    if (isFinal) this.#colour(code, language);
    const box = wrap(code.parentElement, "code-box");
    const head = document.createElement("div");
    head.className = "code-head";
    const name = document.createElement("span");
    name.textContent = language;
    const copy = document.createElement("button");
    Object.assign(copy, { type: "button", className: "ghost", textContent: "Copy" });
    copy.dataset.role = "copy";
    head.append(name, copy);
    box.prepend(head);
    code.parentElement.tabIndex = 0;
  }

  #colour(code, language) {
    const text = code.textContent;
    if (text.length > LONGEST_COLOURED || !this.colours.getLanguage(language)) return;
    const { value } = this.colours.highlight(text, { language, ignoreIllegals: true });
    code.replaceChildren(this.purify.sanitize(value, MAY_BE));
  }
}

function keepInBounds(element) {
  for (const name of Array.from(element.classList)) if (!CLASS.test(name)) element.classList.remove(name);
  if (element.tagName !== "A") return;
  element.rel = "noopener noreferrer nofollow";
  element.target = "_blank";
}

function wrap(element, name) {
  const box = document.createElement("div");
  box.className = name;
  element.replaceWith(box);
  box.append(element);
  return box;
}

/** The position up to which the text is made of whole blocks that what follows does not change. */
export function settledUpTo(text, from = 0) {
  let settled = from;
  let fence = null;
  let isAfterBlank = false;
  for (let at = from; at < text.length; ) {
    const end = text.indexOf("\n", at);
    if (end === -1) break;
    const line = text.slice(at, end);
    if (fence === null && isAfterBlank && beginsBlock(line)) settled = at;
    fence = nextFence(fence, line);
    isAfterBlank = fence === null && line.trim() === "";
    at = end + 1;
  }
  return settled;
}

/** Items of a list and what is indented may belong to the block before. */
function beginsBlock(line) {
  return /^\S/.test(line) && !/^(?:[-*+]|\d{1,9}[.)])(?:\s|$)/.test(line);
}

function nextFence(fence, line) {
  const mark = /^ {0,3}(`{3,}|~{3,})(.*)$/.exec(line);
  if (mark === null) return fence;
  const [, ticks, rest] = mark;
  if (fence === null) return ticks[0] === "`" && rest.includes("`") ? null : ticks;
  return ticks[0] === fence[0] && ticks.length >= fence.length && rest.trim() === "" ? null : fence;
}

const SHORTEST_PAUSE = 40;
const SHARE = 8;

/** One text on the page, formatted as it grows: blocks that are settled are made once. */
export class Formatted {
  constructor({ place, markdown }) {
    Object.assign(this, { place, markdown });
    this.settled = 0;
    this.shown = null;
    this.timer = null;
    this.tail = [];
  }

  /** Show this text soon; `isFinal` at once, and as a whole. */
  update(text, { isFinal }) {
    this.text = text;
    if (isFinal) return this.#finish();
    if (this.timer === null) this.timer = setTimeout(() => this.#grow(), this.pause ?? 0);
  }

  #finish() {
    clearTimeout(this.timer);
    this.timer = null;
    if (this.shown === this.text && this.isFinal) return;
    this.isFinal = true;
    this.#show(() => this.place.replaceChildren(this.markdown.render(this.text, { isFinal: true })));
    this.settled = 0;
    this.tail = [];
  }

  /** The pause follows the cost, so that a long block takes its share of the time and no more. */
  #grow() {
    this.timer = null;
    const began = performance.now();
    this.#show(() => this.#append());
    this.pause = Math.max(SHORTEST_PAUSE, SHARE * (performance.now() - began));
  }

  #append() {
    if (this.isFinal || !this.text.startsWith(this.shown ?? "")) this.#restart();
    for (const node of this.tail) node.remove();
    const settled = settledUpTo(this.text, this.settled);
    if (settled > this.settled) {
      this.place.append(this.markdown.render(this.text.slice(this.settled, settled), { isFinal: true }));
      this.settled = settled;
    }
    const tail = this.markdown.render(this.text.slice(this.settled), { isFinal: false });
    this.tail = Array.from(tail.childNodes);
    this.place.append(tail);
  }

  #restart() {
    this.isFinal = false;
    this.settled = 0;
    this.tail = [];
    this.place.replaceChildren();
  }

  #show(render) {
    render();
    this.shown = this.text;
    this.place.hidden = false;
    this.place.closest("[data-part]").dataset.formatted = true;
  }
}
