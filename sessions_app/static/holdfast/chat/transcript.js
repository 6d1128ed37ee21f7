// What a reader knows of a session, and how each frame of the socket changes it.
//
// No page, no clock, no network: state in, frames in, changes out. Every frame may come twice, late or not
// at all. Events are applied once each, in the order of their seq; deltas are placed by their offset. What
// lies ahead of a gap is kept until the gap is filled, and "sync" is asked for.
//
// Changes are what a view has to redo:
//   {kind: "message", id}            the message is new, or its state changed
//   {kind: "part", id}               the part is new, or its text was replaced
//   {kind: "hidden", id}             the message is not shown any more
//   {kind: "append", id, text}       the part grew by this text
//   {kind: "prompts"}                what is sent or pending changed
//   {kind: "session"}                title, model or pause changed
//   {kind: "status"}, {kind: "ready"}, {kind: "sync"}

import { countCodePoints, dropCodePoints } from "./codepoints.js";

/** The state of a reader who knows everything up to `seq`. */
export function createState({ session, seq = 0, status = null, title = "", agent = "", model = "", policy = "", staged = "" }) {
  return {
    session,
    seq,
    status,
    title,
    agent,
    model,
    policy,
    staged,
    messages: new Map(),
    parts: new Map(),
    pending: new Map(),
    outgoing: new Map(),
    aheadEvents: new Map(),
    earlyParts: new Map(),
  };
}

export function addMessage(state, message) {
  const empty = { error: null, finish: null, notice: null, text: "", retry: null, attempts: new Map() };
  const stored = { ...empty, ...message, parts: [] };
  state.messages.set(message.id, stored);
  return stored;
}

/** Add a part with the text so far; `length` is given where it is known already. */
export function addPart(state, { id, message, index, kind, state: partState, text, length, started }) {
  const part = { id, message, index, kind, state: partState, text, started, ahead: [] };
  part.length = length ?? countCodePoints(text);
  state.parts.set(id, part);
  state.messages.get(message)?.parts.push(id);
  return part;
}

/** Apply one frame; returns the changes. Frames of other kinds change nothing here. */
export function apply(state, frame) {
  switch (frame.t) {
    case "event":
      return applyEventFrame(state, frame.event);
    case "open":
      return applyOpen(state, frame);
    case "delta":
      return applyDelta(state, frame);
    case "status":
      return applyStatus(state, frame.status);
    case "ready":
      return applyReady(state, frame);
    case "admitted":
      return applyAdmitted(state, frame.prompt);
    case "refused":
      return applyRefused(state, frame);
    default:
      return [];
  }
}

/** Whether something is known to be missing. */
export function hasGap(state) {
  if (state.aheadEvents.size > 0 || state.earlyParts.size > 0) return true;
  for (const part of state.parts.values()) {
    if (part.state === "open" && part.ahead.length > 0) return true;
  }
  return false;
}

/** How much of the answer's text is known, in code points. */
export function received(state, message) {
  const parts = message.parts.map((id) => state.parts.get(id)).filter(({ kind }) => kind === "text");
  return parts.reduce((sum, { length }) => sum + length, 0);
}

/** What waits for a decision, if the session waits for it: ids of attempts and calls. */
export function undecided(state) {
  const status = state.status;
  if (!["needs_decision", "waiting"].includes(status?.state)) return [];
  return [...status.unknown.attempts, ...status.unknown.tools, ...status.waiting];
}

/** Whether something is unknown of which nobody has said yet if its provider or tool can be asked. */
export function hasNewUnknown(state) {
  const isNew = ({ decision, can_be_asked: canBeAsked }) => !decision && canBeAsked === undefined;
  for (const part of state.parts.values()) if (part.unknown && isNew(part)) return true;
  for (const { attempts } of state.messages.values()) {
    for (const attempt of attempts.values()) if (isNew(attempt)) return true;
  }
  return false;
}

/** Note of everything unknown whether somebody can be asked; returns what has to be shown anew. */
export function noteAskable(state, askable) {
  const changes = [];
  const note = (unknown, change) => {
    if (unknown.can_be_asked !== undefined) return;
    unknown.can_be_asked = askable.has(unknown.id);
    if (unknown.can_be_asked) changes.push(change);
  };
  for (const part of state.parts.values()) if (part.unknown) note(part, { kind: "part", id: part.id });
  for (const { id, attempts } of state.messages.values()) {
    for (const attempt of attempts.values()) note(attempt, { kind: "message", id });
  }
  return changes;
}

/** The newest message of the conversation, or null. */
export function newestMessage(state) {
  let newest = null;
  for (const message of state.messages.values()) newest = message;
  return newest;
}

// Events

function applyEventFrame(state, event) {
  if (event.seq <= state.seq) return [];
  state.aheadEvents.set(event.seq, event);
  if (event.seq > state.seq + 1) return [{ kind: "sync" }];
  const changes = [];
  for (let next; (next = state.aheadEvents.get(state.seq + 1)) !== undefined; ) {
    state.aheadEvents.delete(next.seq);
    state.seq = next.seq;
    changes.push(...(HANDLERS[next.type]?.(state, next.data, next) ?? []));
  }
  return changes;
}

const HANDLERS = {
  "session.created": (state, data) =>
    changeSession(state, { title: data.title, agent: data.agent, model: data.model, policy: data.recovery_policy ?? "" }),
  "session.updated": sessionUpdated,
  "session.paused": (state) => changePause(state, true),
  "session.unpaused": (state) => changePause(state, false),
  "prompt.admitted": promptAdmitted,
  "prompt.promoted": promptPromoted,
  "prompt.withdrawn": promptWithdrawn,
  "prompt.delivery_changed": promptDeliveryChanged,
  "agent.switched": (state, data, event) => [
    ...changeSession(state, { agent: data.agent }),
    ...addLine(state, "agent-switched", data, event),
  ],
  "model.switched": (state, data, event) => [
    ...changeSession(state, { model: data.model }),
    ...addLine(state, "model-switched", data, event),
  ],
  "step.started": stepStarted,
  "step.ended": (state, data) => closeMessage(state, data, { state: "completed", finish: data.finish }),
  "step.failed": (state, data) =>
    closeMessage(state, data, { state: data.outcome, error: data.error, notice: data.notice ?? null }),
  "text.started": (state, data, event) => openPart(state, data, event, "text"),
  "reasoning.started": (state, data, event) => openPart(state, data, event, "reasoning"),
  "text.ended": closePart,
  "reasoning.ended": closePart,
  "tool.input.started": callStarted,
  "tool.input.ended": (state, data) => changeCall(state, data, BEGUN, { raw: data.raw }),
  "tool.approval_requested": (state, data) =>
    changeCall(state, data, BEGUN, {
      input: formatted(data.input),
      effect: data.effect,
      approval: "waiting",
      approval_reason: data.because,
      earlier: data.earlier ?? null,
    }),
  "tool.approval_decided": (state, data, event) =>
    changeCall(state, data, BEGUN, {
      approval: data.action === "approve" ? "approved" : "denied",
      decision: decisionOf(data, event),
    }),
  "tool.called": (state, data) =>
    changeCall(state, data, BEGUN, { state: "running", input: formatted(data.input), effect: data.effect }),
  "tool.progress": (state, data) => changeCall(state, data, ENTERED, { progress: data.text }),
  "tool.succeeded": (state, data) =>
    changeCall(state, data, UNSETTLED, { state: "completed", progress: "", result: data.output }),
  "tool.failed": (state, data) =>
    changeCall(state, data, UNSETTLED, {
      state: "error",
      result: data.error,
      unknown: data.unknown,
      // What was decided so far was whether it may run; what became of it is a new question.
      ...(data.unknown ? { decision: null, can_be_asked: undefined } : {}),
    }),
  "tool.decided": (state, data, event) => changeCall(state, data, SETTLED, { decision: decisionOf(data, event) }),
  "revert.staged": (state, data) => changeSession(state, { staged: data.message }),
  "revert.cleared": (state) => changeSession(state, { staged: "" }),
  "revert.committed": revertCommitted,
  "retry.scheduled": (state, data) =>
    changeMessage(state, data, { retry: { attempt: data.attempt, at: data.at, reason: data.reason } }),
  "attempt.prepared": (state, data) => changeMessage(state, data, { retry: null }),
  "attempt.response_started": attemptAnswered,
  "attempt.settled": (state, data) => forgetAttempt(state, data),
  "attempt.unknown": attemptUnknown,
  "attempt.resumed": attemptResumed,
  "attempt.decided": attemptDecided,
};

function changeSession(state, fields) {
  Object.assign(state, fields);
  return [{ kind: "session" }];
}

/** Of what can be changed only that is told which was. */
function sessionUpdated(state, data) {
  const changed = "title" in data ? { title: data.title } : {};
  if ("recovery_policy" in data) changed.policy = data.recovery_policy ?? "";
  return changeSession(state, changed);
}

function changePause(state, paused) {
  if (state.status !== null) state.status = { ...state.status, paused };
  return [{ kind: "session" }];
}

function promptAdmitted(state, data, event) {
  state.outgoing.delete(data.message);
  if (!state.messages.has(data.message)) {
    state.pending.set(data.message, {
      id: data.message,
      text: data.text,
      delivery: data.delivery,
      origin: data.origin,
      admitted_seq: event.seq,
    });
  }
  return [{ kind: "prompts" }];
}

function promptPromoted(state, data, event) {
  const prompt = state.pending.get(data.message);
  state.pending.delete(data.message);
  if (prompt === undefined) return [{ kind: "prompts" }];
  addMessage(state, {
    id: prompt.id,
    seq: event.seq,
    type: prompt.origin === "user" ? "user" : "synthetic",
    origin: prompt.origin,
    state: "completed",
    text: prompt.text,
  });
  return [{ kind: "message", id: prompt.id }, { kind: "prompts" }];
}

function promptWithdrawn(state, data) {
  state.pending.delete(data.message);
  state.outgoing.delete(data.message);
  return [{ kind: "prompts" }];
}

function promptDeliveryChanged(state, data) {
  const prompt = state.pending.get(data.message);
  if (prompt !== undefined) prompt.delivery = data.delivery;
  return [{ kind: "prompts" }];
}

function addLine(state, type, data, event) {
  if (state.messages.has(data.message)) return [];
  const { message, ...fields } = data;
  addMessage(state, { ...fields, id: message, seq: event.seq, type, state: "completed" });
  return [{ kind: "message", id: message }];
}

function stepStarted(state, data, event) {
  if (state.messages.has(data.message)) return [];
  addMessage(state, {
    id: data.message,
    seq: event.seq,
    type: "assistant",
    state: "running",
    model: data.model,
  });
  return [{ kind: "message", id: data.message }];
}

function closeMessage(state, data, fields) {
  const message = state.messages.get(data.message);
  if (message === undefined) return [];
  Object.assign(message, fields, { retry: null });
  return [{ kind: "message", id: message.id }];
}

/** The messages from this one on are hidden; of an earlier page nothing is shown here anyway. */
function revertCommitted(state, data) {
  state.staged = "";
  const ids = Array.from(state.messages.keys());
  const from = ids.indexOf(data.message);
  const hidden = from === -1 ? [] : ids.slice(from);
  for (const id of hidden) {
    for (const part of state.messages.get(id).parts) state.parts.delete(part);
    state.messages.delete(id);
  }
  return hidden.map((id) => ({ kind: "hidden", id }));
}

function changeMessage(state, data, fields) {
  const message = state.messages.get(data.message);
  if (message === undefined || message.state !== "running") return [];
  Object.assign(message, fields);
  return [{ kind: "message", id: message.id }];
}

// Tool calls: pending, running, completed or error, forward only. What happened before is not undone by a
// repeat of an event.

const BEGUN = ["pending"];
const ENTERED = ["running"];
const UNSETTLED = ["pending", "running"];
const SETTLED = ["completed", "error"];

/** Formatted as the server formats it. */
export function formatted(value) {
  return JSON.stringify(value, null, 2);
}

function decisionOf({ action, by, policy = false, reason = null }, { time }) {
  return { action, by, policy, reason, at: time };
}

function callStarted(state, data) {
  if (state.parts.has(data.part) || !state.messages.has(data.message)) return [];
  const part = addPart(state, { ...data, id: data.part, kind: "tool", state: "pending", text: "" });
  Object.assign(part, newCall({ name: data.name, hosted: data.hosted }));
  return [{ kind: "part", id: part.id }];
}

/** What is known of a call that the model has only begun. */
export function newCall({ name, hosted = false }) {
  return {
    name,
    hosted,
    raw: "",
    input: null,
    result: "",
    progress: "",
    effect: null,
    approval: null,
    approval_reason: null,
    earlier: null,
    unknown: false,
    decision: null,
  };
}

function changeCall(state, data, before, fields) {
  const part = state.parts.get(data.part);
  if (part === undefined || !before.includes(part.state)) return [];
  Object.assign(part, fields);
  return [{ kind: "part", id: part.id }];
}

// Attempts: only an unknown one is shown

function attemptAnswered(state, data) {
  const message = state.messages.get(data.message);
  if (message !== undefined) message.answered = data.attempt;
  return [];
}

function forgetAttempt(state, data) {
  const message = state.messages.get(data.message);
  if (!message?.attempts.delete(data.attempt)) return [];
  return [{ kind: "message", id: message.id }];
}

function attemptUnknown(state, data) {
  const message = state.messages.get(data.message);
  if (message === undefined || message.attempts.has(data.attempt)) return [];
  const answered = message.answered === data.attempt || data.error.error_class === "partial";
  message.attempts.set(data.attempt, { id: data.attempt, reason: data.error.reason, answered, decision: null });
  return [{ kind: "message", id: message.id }];
}

/** Its provider told what became of it: the answer is written on, mostly anew. */
function attemptResumed(state, data) {
  const message = state.messages.get(data.message);
  if (message === undefined) return [];
  message.attempts.delete(data.attempt);
  Object.assign(message, { state: "running", error: null, notice: null });
  const changed = { kind: "message", id: message.id };
  if (data.keeps_parts) return [changed];
  for (const id of message.parts) state.parts.delete(id);
  message.parts = [];
  return [{ kind: "emptied", id: message.id }, changed];
}

function attemptDecided(state, data, event) {
  const message = state.messages.get(data.message);
  const attempt = message?.attempts.get(data.attempt);
  if (attempt === undefined) return [];
  attempt.decision = decisionOf(data, event);
  return [{ kind: "message", id: message.id }];
}

function openPart(state, data, { time }, kind) {
  if (state.parts.has(data.part) || !state.messages.has(data.message)) return [];
  const part = addPart(state, {
    id: data.part,
    message: data.message,
    index: data.index,
    kind,
    state: "open",
    text: "",
    started: time,
  });
  const early = state.earlyParts.get(part.id);
  state.earlyParts.delete(part.id);
  const changes = [{ kind: "part", id: part.id }];
  for (const frame of early ?? []) changes.push(...apply(state, frame));
  return changes;
}

function closePart(state, data, { time }) {
  const part = state.parts.get(data.part);
  if (part === undefined) return [];
  part.state = "completed";
  part.seconds = part.started ? (Date.parse(time) - Date.parse(part.started)) / 1000 : undefined;
  part.ahead = [];
  part.text = data.text;
  part.length = countCodePoints(data.text);
  return [{ kind: "part", id: part.id }];
}

// The text of open parts

/** The text so far. A part only grows, so that a reader who is further along keeps what it has. */
function applyOpen(state, frame) {
  const part = state.parts.get(frame.part);
  if (part === undefined) return keepEarly(state, frame);
  if (part.state !== "open") return [];
  return [...reach(part, frame.text), ...takeAhead(state, part)];
}

function reach(part, text) {
  if (part.text.startsWith(text)) return [];
  const grows = text.startsWith(part.text);
  const change = grows
    ? { kind: "append", id: part.id, text: text.slice(part.text.length) }
    : { kind: "part", id: part.id };
  part.text = text;
  part.length = countCodePoints(text);
  return [change];
}

function applyDelta(state, frame) {
  const part = state.parts.get(frame.part);
  if (part === undefined) return keepEarly(state, frame);
  if (part.state !== "open") return [];
  if (frame.offset > part.length) {
    part.ahead.push(frame);
    return [{ kind: "sync" }];
  }
  const changes = grow(part, frame);
  return part.ahead.length > 0 ? changes.concat(takeAhead(state, part)) : changes;
}

/** Append what of the delta is new. */
function grow(part, { offset, text }) {
  const fresh = offset === part.length ? text : dropCodePoints(text, part.length - offset);
  if (fresh === "") return [];
  part.text += fresh;
  part.length += countCodePoints(fresh);
  return [{ kind: "append", id: part.id, text: fresh }];
}

function takeAhead(state, part) {
  const changes = [];
  part.ahead.sort((one, other) => one.offset - other.offset);
  while (part.ahead.length > 0 && part.ahead[0].offset <= part.length) {
    changes.push(...grow(part, part.ahead.shift()));
  }
  return changes;
}

/** Live text of a part whose start is not known yet: its event is on the way, or was lost. */
function keepEarly(state, frame) {
  const kept = state.earlyParts.get(frame.part) ?? [];
  kept.push(frame);
  state.earlyParts.set(frame.part, kept);
  return frame.t === "delta" ? [{ kind: "sync" }] : [];
}

// Status and prompts

/** An older status than the events that are known says nothing. */
function applyStatus(state, status) {
  if (state.status !== null && status.head_seq < state.status.head_seq) return [];
  state.status = status;
  return [{ kind: "status" }];
}

/** Caught up. Early text of a part that no event announced belongs to nothing that is shown. */
function applyReady(state, frame) {
  if (state.seq < frame.head_seq) return [{ kind: "ready" }, { kind: "sync" }];
  state.earlyParts.clear();
  return hasGap(state) ? [{ kind: "ready" }, { kind: "sync" }] : [{ kind: "ready" }];
}

/** The database has the prompt. Its event may be known already, or come later. */
function applyAdmitted(state, prompt) {
  state.outgoing.delete(prompt.id);
  const comesLater = prompt.admitted_seq > state.seq && prompt.state !== "withdrawn";
  if (comesLater && !state.messages.has(prompt.id)) state.pending.set(prompt.id, prompt);
  return [{ kind: "prompts" }];
}

function applyRefused(state, { id, code, detail }) {
  const prompt = state.outgoing.get(id);
  if (prompt === undefined) return [];
  Object.assign(prompt, { phase: "refused", code, detail });
  return [{ kind: "prompts" }];
}
