// Tool calls on the page: each a calm line that opens, neighbours folded together.

import { copyOf, say, setText, slot } from "./markup.js";
import { fill } from "./words.js";

const CALM = new Set(["pending", "approved", "running", "completed"]);

/** Which words and colours a call gets: its state, or what is special about it. */
export function look({ state, unknown, approval }) {
  if (unknown) return "unknown";
  if (state === "error") return approval === "denied" ? "denied" : "error";
  if (state === "pending" && approval) return approval;
  return state;
}

/** Bring the element of a call up to date. */
export function showCall(element, part, words) {
  const how = look(part);
  const asks = how === "waiting" || (how === "unknown" && !part.decision);
  const asked = element.dataset.asks === "true";
  if (asks !== asked) element.querySelector(".call").open = asks;
  Object.assign(element.dataset, { state: part.state, look: how, asks });
  setText(slot(element, "label"), fill(words.tools.calls[how], part.name || "a tool"));
  const input = part.input ?? part.raw;
  setText(slot(element, "input"), cut(input, words));
  say(slot(element, "text"), cut(part.result, words));
  slot(element, "result-head").hidden = part.result === "";
  setText(slot(element, "result-name"), part.state === "error" ? "Error" : "Result");
  slot(element, "cut").hidden = !(part.isCut || isLong(input, words) || isLong(part.result, words));
  slot(element, "hosted").hidden = !part.hosted;
  say(slot(element, "progress"), part.progress);
}

/** The server shows as many code points; a text of fewer units has no more of them. */
function cut(text, words) {
  return isLong(text, words) ? Array.from(text).slice(0, words.tools.shown).join("") : text;
}

function isLong(text, words) {
  return text.length > words.tools.shown && Array.from(text).length > words.tools.shown;
}

/** Neighbouring calls that need nobody's attention share one fold; what is lifted out stands by itself. */
export function fold(parts, words) {
  const elements = Array.from(parts.querySelectorAll("[data-part]"));
  const blocks = runs(elements).map((run) => (run.length > 1 ? group(run, words) : run[0]));
  if (blocks.length === parts.children.length && blocks.every((block, at) => block === parts.children[at])) return;
  const focused = document.activeElement;
  parts.replaceChildren(...blocks);
  if (parts.contains(focused)) focused.focus({ preventScroll: true });
}

function runs(elements) {
  const found = [];
  let calm = null;
  for (const element of elements) {
    const isCalm = element.dataset.kind === "tool" && CALM.has(element.dataset.look);
    if (isCalm && calm !== null) calm.push(element);
    else found.push((calm = [element]));
    if (!isCalm) calm = null;
  }
  return found;
}

function group(run, words) {
  const existing = run.map((element) => element.closest("[data-slot=tools]")).find((each) => each !== null);
  const element = existing ?? copyOf("tools");
  const isRunning = run.some(({ dataset }) => dataset.look !== "completed");
  element.dataset.running = isRunning;
  const label = words.tools.groups[isRunning ? "running" : "completed"];
  setText(slot(element, "tools-label"), fill(label, run.length));
  const body = slot(element, "tools-body");
  const isSame = run.length === body.children.length && run.every((member, at) => member === body.children[at]);
  if (!isSame) body.replaceChildren(...run);
  return element;
}
