// Which words say what the session is doing. The words themselves come with the page.

const BILLED_CLASSES = new Set(["failed", "ambiguous", "partial"]);
const OWN_WORDS = new Set(["interrupted:interrupted", "interrupted:shutdown", "unknown:crash"]);
const BUSY_KINDS = { text: "answering", reasoning: "thinking" };
const STATE_PILLS = {
  queued: "queued",
  retrying: "retrying",
  waiting: "waiting",
  orphaned: "orphaned",
};
export const RUNNING = new Set(["busy", "queued", "retrying"]);

/** The key of the pill, or an empty text when there is nothing to say. */
export function pill(state, newest) {
  const status = state.status;
  if (status === null) return "";
  if (status.state === "busy") return isComplete(newest) ? "" : (BUSY_KINDS[openKind(state, newest)] ?? "model");
  if (status.state === "needs_decision") return isUnknown(newest) ? "unknown" : "undecided";
  if (status.state in STATE_PILLS) return STATE_PILLS[status.state];
  if (status.paused && state.pending.size > 0) return "paused";
  return endedPill(newest);
}

function isUnknown(message) {
  return message?.state === "unknown";
}

/** Busy with nothing that a reader waits for: the owner is about to let go, or to go on. */
function isComplete(message) {
  return message?.type === "assistant" && message.state === "completed";
}

function openKind(state, message) {
  let kind = "";
  for (const id of message?.parts ?? []) {
    const part = state.parts.get(id);
    if (part.state === "open") kind = part.kind;
  }
  return kind;
}

function endedPill(message) {
  if (message?.type !== "assistant") return "";
  if (message.state === "failed" || message.state === "unknown") return message.state;
  if (message.state !== "interrupted") return "";
  return message.error?.reason === "interrupted" ? "stopped" : "interrupted";
}

/** Why an answer ended as it did; empty for one that is simply complete or still runs. */
export function note(state, message, words) {
  if (message.type !== "assistant") return "";
  // The card says it.
  if (message.state === "unknown" && message.attempts.size > 0) return "";
  if (message.state === "completed") {
    return words.outcomes[`finish:${message.finish}`] ?? (hasText(state, message) ? "" : words.outcomes.completed);
  }
  if (!["failed", "interrupted", "unknown"].includes(message.state)) return "";
  const key = `${message.state}:${message.error?.reason ?? ""}`;
  const said = [words.outcomes[key] ?? words.outcomes[message.state]];
  if (!OWN_WORDS.has(key) && message.error?.message) said.push(message.error.message);
  if (message.state === "unknown" || BILLED_CLASSES.has(message.error?.error_class)) said.push(words.billed);
  return said.join(" ");
}

function hasText(state, message) {
  return message.parts.some((id) => {
    const part = state.parts.get(id);
    return part.kind !== "text" || part.text.trim() !== "";
  });
}

/** What it is called to ask for the newest answer once more. */
export function again(newest, words) {
  return words.again[newest?.state === "failed" ? "failed" : "completed"];
}

/** The line that reasoning folds to; without seconds it is still written. */
export function thoughts(seconds, words) {
  if (seconds === null) return words.thoughts.open;
  return seconds < 1 ? words.thoughts.short : fill(words.thoughts.long, Math.floor(seconds));
}

/** What a reader must know of a session that does not go on by itself. */
export function sessionNote(status, words) {
  if (status === null) return "";
  const isParked = status.state === "needs_decision" && status.parked;
  return words.notes[isParked ? "parked" : status.state] ?? "";
}

/** What a message that nobody wrote is called in the transcript. */
export function line(message, words) {
  const key = message.type in words.lines ? message.type : message.origin;
  const named = message.type === "model-switched" ? message.model : message.agent;
  return fill(words.lines[key] ?? words.lines.system, named ?? "");
}

/** When a failed attempt is followed by the next, at this moment. */
export function retryWords({ attempt, at }, words, now = Date.now()) {
  const seconds = Math.ceil((Date.parse(at) - now) / 1000);
  return fill(seconds > 0 ? words.retry.soon : words.retry.now, attempt).replace("{seconds}", seconds);
}

/** A phrase with its gap filled; whatever fills it is text, never a pattern. */
export function fill(phrase, text) {
  return phrase.replace("{}", () => text);
}

/** How many things wait for a decision, in words. */
export function bannerWords(count, words) {
  if (count === 0) return "";
  return count === 1 ? words.cards.banner.one : fill(words.cards.banner.many, count);
}

/** A name for a chat from its first line; at most 60 characters, cut at a word. */
export function titleOf(text) {
  const lines = text.split("\n").map((each) => each.split(/\s+/).filter(Boolean).join(" "));
  const line = lines.find(Boolean) ?? "";
  const points = Array.from(line);
  if (points.length <= 60) return line;
  const cut = points.slice(0, 60).join("").replace(/ [^ ]*$/, "");
  return `${cut.replace(/[.,;:]+$/, "")}…`;
}
