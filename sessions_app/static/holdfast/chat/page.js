// What the server rendered, read back: the page is the snapshot, nothing is sent twice.

import { addMessage, addPart, createState, newCall } from "./transcript.js";

const readJson = (id) => JSON.parse(document.getElementById(id)?.textContent ?? "null");

export const words = readJson("words");

/** The state of a reader at the moment the page was made. */
export function readState(root) {
  const live = readJson("live");
  const state = createState({
    session: root.dataset.session || null,
    seq: Number(root.dataset.headSeq),
    status: live?.status ?? null,
    title: live?.title ?? "",
    model: live?.model ?? "",
  });
  for (const element of root.querySelectorAll("[data-slot=transcript] > [data-message]")) readMessage(state, element, live);
  for (const prompt of live?.pending ?? []) state.pending.set(prompt.id, prompt);
  return state;
}

function readMessage(state, element, live) {
  const { message: id, seq, type, state: messageState, finish, reason, retryAttempt, retryAt } = element.dataset;
  const message = addMessage(state, {
    id,
    seq: Number(seq),
    type,
    state: messageState === "waiting" ? "running" : messageState,
    finish: finish || null,
    error: reason ? { reason } : null,
  });
  if (retryAt !== undefined) {
    message.retry = { attempt: Number(retryAttempt), at: retryAt, reason: textOf(element, "retry-reason") };
  }
  for (const attempt of live?.attempts[id] ?? []) message.attempts.set(attempt.id, attempt);
  for (const part of element.querySelectorAll("[data-part]")) readPart(state, id, part, live);
}

function readPart(state, message, element, live) {
  const { part: id, index, kind, state: partState, length } = element.dataset;
  const facts = { id, message, index: Number(index), kind, state: partState };
  if (kind !== "tool") addPart(state, { ...facts, text: textOf(element, "text"), length: Number(length) });
  else Object.assign(addPart(state, { ...facts, text: "" }), readCall(element, live?.calls[id] ?? {}));
}

/** Long texts of a call are read from the page, the rest comes beside it. */
function readCall(element, facts) {
  return {
    ...newCall(facts),
    ...facts,
    input: textOf(element, "input"),
    result: textOf(element, "text"),
    progress: textOf(element, "progress"),
    isCut: !element.querySelector("[data-slot=cut]").hidden,
  };
}

function textOf(element, name) {
  return element.querySelector(`[data-slot="${name}"]`).textContent;
}
