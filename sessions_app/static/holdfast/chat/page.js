// What the server rendered, read back: the page is the snapshot, nothing is sent twice.

import { addMessage, addPart, createState } from "./transcript.js";

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
  for (const element of root.querySelectorAll("[data-slot=transcript] > [data-message]")) readMessage(state, element);
  for (const prompt of live?.pending ?? []) state.pending.set(prompt.id, prompt);
  return state;
}

function readMessage(state, element) {
  const { message: id, seq, type, state: messageState, finish, reason } = element.dataset;
  addMessage(state, {
    id,
    seq: Number(seq),
    type,
    state: messageState,
    finish: finish || null,
    error: reason ? { reason } : null,
  });
  for (const part of element.querySelectorAll("[data-part]")) readPart(state, id, part);
}

function readPart(state, message, element) {
  const { part: id, index, kind, state: partState, length } = element.dataset;
  const text = element.querySelector("[data-slot=text]").textContent;
  addPart(state, { id, message, index: Number(index), kind, state: partState, text, length: Number(length) });
}
