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
    agent: live?.agent ?? "",
    model: live?.model ?? "",
    policy: live?.recovery_policy ?? "",
    staged: live?.staged ?? "",
  });
  for (const element of messagesIn(root)) readMessage(state, element, live);
  for (const prompt of live?.pending ?? []) state.pending.set(prompt.id, prompt);
  return state;
}

const messagesIn = (place) => Array.from(place.querySelectorAll("[data-slot=transcript] > [data-message]"));

/** Put the messages of an earlier page in front of what is known; returns their elements. */
export function readEarlier(page, state) {
  const live = JSON.parse(page.getElementById("live").textContent);
  const earlier = createState({ session: state.session });
  const elements = messagesIn(page).filter(({ dataset }) => !state.messages.has(dataset.message));
  for (const element of elements) readMessage(earlier, element, live);
  state.messages = new Map([...earlier.messages, ...state.messages]);
  for (const [id, part] of earlier.parts) state.parts.set(id, part);
  return elements;
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
  const { part: id, index, kind, state: partState, length, started } = element.dataset;
  const facts = { id, message, index: Number(index), kind, state: partState };
  if (kind !== "tool") addPart(state, { ...facts, started, text: textOf(element, "text"), length: Number(length) });
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
