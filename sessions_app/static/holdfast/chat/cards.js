// Cards: what waits for a person, what is known of it, and what was chosen. Choosing is done once, by anyone.

import { ApiError, call } from "./api.js";
import { copyOf, say, setText, slot } from "./markup.js";
import { received } from "./transcript.js";
import { fill } from "./words.js";

const ARMED_FOR = 4000;

/** The facts of the card of an unknown attempt. */
export function attemptCard(state, message, attempt, { isNewest, words }) {
  const key = isNewest ? "attempt" : "attempt:superseded";
  const { what, risks, actions, titles } = words.cards;
  return {
    kind: "attempt",
    id: attempt.id,
    title: decidedWords(attempt.decision, words) || titles.attempt,
    what: what[`attempt:${attempt.reason}`] ?? what.attempt,
    steps: [
      step("prepared", "done", words),
      step("sent", attempt.answered ? "done" : "unknown", words),
      step("received", "unknown", words, received(state, message)),
    ],
    risk: risks[key],
    actions: attempt.can_be_asked ? [words.cards.asks.attempt, ...actions[key]] : actions[key],
    decision: attempt.decision,
    earlier: null,
  };
}

/** The facts of the card of a call, or null: its unknown outcome, or the question whether it may run. */
export function callCard(part, words) {
  const kind = kindOf(part);
  if (kind === null) return null;
  const key = kind === "approval" && part.approval_reason === "duplicate" ? "approval:duplicate" : kind;
  const { what, risks, actions, titles } = words.cards;
  const steps = [step("requested", "done", words), step("started", "done", words), step("result", "unknown", words)];
  return {
    kind,
    id: part.id,
    title: decidedWords(part.decision, words) || fill(titles[kind], part.name || "a tool"),
    what: what[key],
    steps: kind === "call" ? steps : [],
    risk: risks[kind],
    actions: kind === "call" && part.can_be_asked ? [words.cards.asks.call, ...actions[key]] : actions[key],
    decision: part.decision,
    earlier: part.earlier,
  };
}

function kindOf({ unknown, approval, state }) {
  if (unknown) return "call";
  if (approval === "approved" || approval === "denied") return "approval";
  return approval === "waiting" && state === "pending" ? "approval" : null;
}

function step(name, mark, words, count = 0) {
  return { words: fill(words.cards.steps[name], count), mark };
}

/** Who decided what; empty as long as nobody did. */
export function decidedWords(decision, words) {
  if (!decision) return "";
  if (decision.policy) return words.cards.decided.policy;
  return `${words.cards.decided[decision.action]} by ${decision.by}`;
}

/** Put the card in its place, or bring the one that is there up to date. */
export function showCard(place, card) {
  const found = Array.from(place.children).find(({ dataset }) => dataset.target === card.id);
  const element = found ?? copyOf("card");
  const shown = JSON.stringify(card);
  if (element.dataset.shown === shown) return;
  fillCard(element, card);
  element.dataset.shown = shown;
  if (found === undefined) place.append(element);
}

function fillCard(element, card) {
  const isNews = element.dataset.target !== card.id;
  const isDecided = Boolean(card.decision);
  const hadFocus = element.contains(document.activeElement);
  if (isNews || isDecided !== (element.dataset.decided === "true")) element.open = !isDecided;
  element.id = card.id;
  Object.assign(element.dataset, { card: card.kind, target: card.id, decided: isDecided });
  setText(slot(element, "card-title"), card.title);
  // Read out once, when it comes up while somebody looks.
  if (isNews && !isDecided) slot(element, "card-what").setAttribute("role", "alert");
  setText(slot(element, "card-what"), card.what);
  fillDecision(element, card);
  const earlier = slot(element, "card-earlier");
  earlier.hidden = !card.earlier;
  earlier.href = `#${card.earlier ?? ""}`;
  const steps = slot(element, "card-steps");
  steps.hidden = card.steps.length === 0;
  steps.replaceChildren(...card.steps.map(item));
  say(slot(element, "card-risk"), isDecided ? "" : card.risk);
  slot(element, "card-result").hidden = card.kind !== "call";
  slot(element, "card-actions").replaceChildren(...card.actions.map(choice));
  if (hadFocus && isDecided) element.querySelector("summary").focus();
}

function fillDecision(element, { decision }) {
  const at = slot(element, "card-at");
  at.hidden = !decision;
  if (decision) showTime(at, decision.at);
  const reason = decision && !decision.policy && decision.reason ? `· ${decision.reason}` : "";
  say(slot(element, "card-reason"), reason);
  slot(element, "card-form").hidden = Boolean(decision);
}

/** The times of the cards below an element that the server rendered. */
export function showTimes(element) {
  for (const time of element.querySelectorAll("[data-slot=card-at]:not([hidden])")) showTime(time, time.dateTime);
}

/** A time of day by the reader's clock, with the day where it is not today. */
export function showTime(element, at) {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return;
  element.dateTime = at;
  const isToday = time.toDateString() === new Date().toDateString();
  const form = isToday ? { timeStyle: "short" } : { dateStyle: "medium", timeStyle: "short" };
  setText(element, new Intl.DateTimeFormat(undefined, form).format(time));
}

function item({ words, mark }) {
  const element = document.createElement("li");
  element.dataset.mark = mark;
  element.textContent = words;
  return element;
}

function choice({ value, label, confirm }) {
  const element = document.createElement("button");
  Object.assign(element, { className: "choice", name: "action", value, textContent: label });
  element.dataset.confirm = confirm;
  return element;
}

/** Listens for choices on all cards below an element. `onDecided(shape)` gets the API's answer. */
export class Decisions {
  constructor({ root, words, onDecided }) {
    Object.assign(this, { words, onDecided });
    root.addEventListener("submit", (event) => this.#submitted(event));
    showTimes(root);
  }

  #submitted(event) {
    const card = event.target.closest("[data-card]");
    if (card === null) return;
    event.preventDefault();
    const button = event.submitter ?? slot(card, "card-actions").querySelector("button");
    if (button.value === "ask") return this.#ask(card, button);
    if (button.value === "mark_done" && !card.classList.contains("is-marking")) return askResult(card, button);
    if (button.dataset.confirm === "true" && !button.classList.contains("is-armed")) return arm(button);
    this.#decide(card, button);
  }

  async #decide(card, button) {
    const { card: kind, target } = card.dataset;
    const form = slot(card, "card-form");
    const path = kind === "attempt" ? `/attempts/${target}/decide` : `/tool-calls/${target}/decide`;
    disable(card, true);
    try {
      this.onDecided(kind, await call("POST", path, chosen(form, button.value)));
    } catch (error) {
      this.#refused(card, error);
    } finally {
      disable(card, false);
    }
  }

  /** Asking decides nothing and can be repeated; what comes of it arrives as events. */
  async #ask(card, button) {
    const { card: kind, target } = card.dataset;
    const label = button.textContent;
    button.textContent = "Checking…";
    disable(card, true);
    try {
      const shape = await call("POST", `/${kind === "attempt" ? "attempts" : "tool-calls"}/${target}/reconcile`, {});
      if (shape.decision) this.onDecided(kind, shape);
      else if (shape.unknown || shape.state === "unknown") say(slot(card, "card-asked"), this.words.cards.asked);
    } catch (error) {
      this.#refused(card, error);
    } finally {
      button.textContent = label;
      disable(card, false);
    }
  }

  #refused(card, error) {
    const decision = error instanceof ApiError ? error.problem?.decision : undefined;
    if (decision) this.onDecided(card.dataset.card, { id: card.dataset.target, decision });
    const said = decision ? `Already decided: ${decidedWords(decision, this.words)}` : null;
    if (said !== null) setText(slot(card, "card-title"), said);
    else say(slot(card, "card-refusal"), error instanceof ApiError ? error.message : "The server could not be reached. Nothing was decided.");
  }
}

function chosen(form, action) {
  const reason = form.elements.namedItem("reason").value.trim();
  const result = form.elements.namedItem("result").value;
  return {
    action,
    ...(reason === "" ? {} : { reason }),
    ...(action === "mark_done" && result !== "" ? { result } : {}),
  };
}

function disable(card, isBusy) {
  for (const button of slot(card, "card-actions").children) button.disabled = isBusy;
}

/** A risky choice takes two clicks, the second one soon. */
function arm(button) {
  const label = button.textContent;
  button.classList.add("is-armed");
  button.textContent = "Confirm?";
  setTimeout(() => {
    button.classList.remove("is-armed");
    button.textContent = label;
  }, ARMED_FOR);
}

function askResult(card, button) {
  card.classList.add("is-marking");
  button.textContent = "Mark as done";
  slot(card, "card-result").querySelector("textarea").focus();
}
