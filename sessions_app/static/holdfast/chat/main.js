// The chat page: ties state, view, composer and connection together.

import { ApiError, call } from "./api.js";
import { Decisions } from "./cards.js";
import { Composer } from "./composer.js";
import { Connection, backoff } from "./connection.js";
import { Earlier } from "./earlier.js";
import { newId } from "./identity.js";
import { loadMarkdown } from "./markdown.js";
import { Menu } from "./menu.js";
import { Outbox } from "./outbox.js";
import { readState, words } from "./page.js";
import { Pickers } from "./pickers.js";
import { watchPopups } from "./popups.js";
import { Sidebar } from "./sidebar.js";
import { Strip } from "./strip.js";
import { apply, hasNewUnknown, newestMessage, noteAskable } from "./transcript.js";
import { slot } from "./markup.js";
import { View } from "./view.js";
import { titleOf } from "./words.js";

const PATIENCE = 5000;

class Chat {
  constructor(root) {
    this.root = root;
    this.path = window.location.pathname;
    this.state = readState(root);
    this.outbox = new Outbox({ storage: window.localStorage, user: root.dataset.user });
    this.sidebar = new Sidebar({ root: document, words, seen: this.outbox, current: this.state.session });
    this.strip = new Strip({ root, onRetry: () => this.retryNow() });
    this.view = new View({ root, state: this.state, words, acts: this });
    this.composer = new Composer({
      form: root.querySelector("[data-slot=composer]"),
      draft: this.outbox.draft(this.state.session ?? "new"),
      onSend: (text, delivery) => this.send(text, delivery),
      onStop: () => this.stop(),
      onDraft: (text) => this.outbox.keepDraft(this.state.session ?? "new", text),
    });
    this.connection = new Connection({
      session: this.state.session,
      after: () => this.state.seq,
      onFrame: (frame) => this.received(frame),
      onChange: (how, delay) => this.connectionChanged(how, delay),
    });
    root.addEventListener("submit", (event) => this.#submitted(event));
    this.pickers = new Pickers({ root, state: this.state, composer: this.composer, words });
    new Earlier({ root, state: this.state, view: this.view });
    this.decisions = new Decisions({ root, words, onDecided: (kind, shape) => this.decided(kind, shape) });
    new Menu({ root, session: () => this.state.session, isRunning: () => this.view.isRunning });
    this.view.scroller.addEventListener("click", (event) => this.#clicked(event));
    setInterval(() => this.#look(), 1000);
  }

  start() {
    loadMarkdown().then((markdown) => markdown !== null && this.view.format(markdown));
    if (this.state.session === null) return this.#resumeCreation();
    for (const prompt of this.outbox.prompts(this.state.session)) this.#trackUnsent(prompt);
    this.view.showPrompts();
    if (!this.#goTo(window.location.hash.slice(1))) this.view.followAgain();
    this.#refresh();
    this.connection.connect();
    this.#learnWhoCanBeAsked();
  }

  /** A link to a message or a card leads there, not to the end. */
  #goTo(id) {
    const place = id === "" ? null : document.getElementById(id);
    if (place === null || !this.view.transcript.contains(place)) return false;
    this.view.stay();
    place.scrollIntoView();
    return true;
  }

  // What arrives

  received(frame) {
    const wasRunning = this.view.isRunning;
    const changes = apply(this.state, frame);
    if (changes.some(({ kind }) => kind === "sync")) this.connection.sync();
    this.#settleStop(frame, changes);
    if (frame.t === "ready") this.strip.caughtUp();
    if (frame.t === "ready" && this.view.frozen) this.connection.send({ t: "interrupt" });
    if (frame.t === "admitted") this.outbox.forget(this.state.session, frame.prompt.id);
    if (frame.t === "event" && frame.event.type === "prompt.admitted") {
      this.outbox.forget(this.state.session, frame.event.data.message);
    }
    if (frame.t === "event") this.#seen(frame.event);
    this.view.redo(changes);
    if (changes.some(({ kind }) => kind !== "append")) {
      this.#refresh();
      this.#learnWhoCanBeAsked();
    }
    if (wasRunning !== this.view.isRunning) this.#announce();
  }

  /** What moves a chat up the list was read here. */
  #seen({ type, time }) {
    if (document.hidden || !["prompt.admitted", "step.ended", "step.failed"].includes(type)) return;
    this.outbox.keepSeen(this.state.session, time);
  }

  /** Events tell that an outcome is unknown; whether its provider or tool can be asked, the API knows. */
  async #learnWhoCanBeAsked() {
    if (this.isLearning || !hasNewUnknown(this.state)) return;
    this.isLearning = true;
    const query = `?session=${this.state.session}&needs_decision=true&limit=200`;
    try {
      const lists = await Promise.all([call("GET", `/attempts${query}`), call("GET", `/tool-calls${query}`)]);
      const askable = lists.flatMap(({ results }) => results).filter(({ can_be_asked: canBeAsked }) => canBeAsked);
      this.view.redo(noteAskable(this.state, new Set(askable.map(({ id }) => id))));
    } catch {
      // The decisions are there all the same; the next change asks again.
    } finally {
      this.isLearning = false;
    }
  }

  /** What changes by time alone: how long the model has been silent, how long the connection is lost. */
  #look() {
    this.view.isLost = this.strip.isLost;
    this.view.tick();
  }

  connectionChanged(how, delay) {
    if (how === "open") {
      this.strip.open();
      this.#look();
      for (const prompt of this.state.outgoing.values()) this.#transmit(prompt);
    }
    if (how === "lost") this.strip.lost(delay);
    if (how === "gone") this.strip.gone();
    if (how === "signed-out") this.strip.signedOut();
  }

  retryNow() {
    if (this.creation === undefined) return this.connection.retryNow();
    clearTimeout(this.creation);
    return this.#create(0);
  }

  #announce() {
    const newest = newestMessage(this.state);
    if (this.view.isRunning) return this.view.announce("Generating answer");
    if (newest?.state === "interrupted") return this.view.announce("Stopped");
    if (newest?.state !== "completed") return this.view.announce("The answer did not complete");
    const text = newest.parts.map((id) => this.state.parts.get(id)).filter((part) => part.kind === "text");
    const count = text.flatMap((part) => part.text.split(/\s+/)).filter(Boolean).length;
    return this.view.announce(`Answer complete, ${count} words`);
  }

  #refresh() {
    const running = this.view.isRunning;
    this.view.showPrompts();
    const waiting = this.state.status?.state === "waiting";
    this.composer.show({ running: running || waiting, waiting, stopping: this.view.frozen });
    const { session, title, status } = this.state;
    const endedAs = newestMessage(this.state)?.state;
    if (session !== null) this.sidebar.show(session, { title, state: status?.state, endedAs });
    this.pickers.show();
  }

  // Sending

  /** The bubble is there at once; the prompt is kept until the database has it. */
  send(text, delivery) {
    const prompt = { id: newId("msg"), text, delivery, at: Date.now() };
    if (this.state.session === null) this.#begin(text);
    this.outbox.keep(this.state.session, prompt);
    this.outbox.keepDraft(this.state.session, "");
    this.#track(prompt);
    this.view.showPrompts();
    this.view.anchor();
    this.#transmit(prompt);
  }

  #track(prompt) {
    this.state.outgoing.set(prompt.id, { ...prompt, phase: "sending" });
    setTimeout(() => this.#worry(prompt.id), PATIENCE);
  }

  #trackUnsent(prompt) {
    if (!this.state.messages.has(prompt.id) && !this.state.pending.has(prompt.id)) this.#track(prompt);
    else this.outbox.forget(this.state.session, prompt.id);
  }

  #worry(id) {
    const prompt = this.state.outgoing.get(id);
    if (prompt?.phase !== "sending") return;
    prompt.phase = "unsent";
    this.view.showPrompts();
  }

  #transmit({ id, phase }) {
    if (phase === "refused") return;
    const { text, delivery } = this.state.outgoing.get(id);
    this.connection.send({ t: "prompt", id, text, delivery });
  }

  sendNow(id) {
    this.state.outgoing.get(id).phase = "sending";
    setTimeout(() => this.#worry(id), PATIENCE);
    this.view.showPrompts();
    if (this.connection.isOpen) this.#transmit({ id });
    else this.retryNow();
  }

  edit(id) {
    const { text } = this.state.outgoing.get(id);
    this.discard(id);
    this.composer.put(text);
  }

  keepBoth(id) {
    const { text, delivery } = this.state.outgoing.get(id);
    this.discard(id);
    this.send(text, delivery);
  }

  discard(id) {
    this.state.outgoing.delete(id);
    this.outbox.forget(this.state.session, id);
    this.view.showPrompts();
  }

  async withdraw(id) {
    await this.#ask("DELETE", `/sessions/${this.state.session}/prompts/${id}`);
  }

  // Stop and resume

  /** The page says so at once; the session stops when its owner has heard of it. */
  stop() {
    this.view.freeze();
    this.#refresh();
    if (!this.connection.send({ t: "interrupt" })) this.#ask("POST", `/sessions/${this.state.session}/interrupt`, {});
  }

  /** The text moves again when the answer is closed, or when there was nothing to stop. */
  #settleStop(frame, changes) {
    if (!this.view.frozen) return;
    const closed = changes.some(({ kind, id }) => kind === "message" && this.state.messages.get(id).state !== "running");
    const told = changes.some(({ kind }) => kind === "status") && !this.view.isRunning;
    const refused = frame.t === "interrupted" && !frame.interrupted;
    if (closed || told || refused) this.view.thaw();
  }

  // Deciding

  /** The answer of the API shows at once; the event says the same to every tab. */
  decided(kind, { id, decision, approval }) {
    if (kind === "attempt") {
      const message = Array.from(this.state.messages.values()).find(({ attempts }) => attempts.has(id));
      if (message === undefined) return;
      message.attempts.get(id).decision = decision;
      return this.view.redo([{ kind: "message", id: message.id }]);
    }
    const part = this.state.parts.get(id);
    if (part === undefined) return;
    part.decision = decision;
    if (approval) part.approval = approval;
    this.view.redo([{ kind: "part", id }]);
  }

  #clicked({ target }) {
    const button = target.closest("[data-role]");
    const role = button?.dataset.role;
    if (role === "stop-trying") this.stop();
    if (role === "copy") copyCode(button);
    if (role === "copy-answer") copied(slot(button, "copy-words"), this.view.answer);
    if (role === "switch-model") this.#openModels();
  }

  #openModels() {
    const picker = this.root.querySelector("[data-picker=model]");
    picker.open = true;
    picker.querySelector("summary").focus();
  }

  #submitted(event) {
    const form = event.target;
    if (form.dataset.role === "resume") {
      event.preventDefault();
      this.resume();
    }
    if (form.dataset.slot === "staged") {
      event.preventDefault();
      this.#ask("DELETE", `/sessions/${this.state.session}/revert`);
    }
  }

  /** What waits is taken back, and stands where it can be written anew. */
  async editPending({ id, text }) {
    if (await this.#ask("DELETE", `/sessions/${this.state.session}/prompts/${id}`)) this.composer.put(text);
  }

  async steer(id) {
    await this.#ask("PATCH", `/sessions/${this.state.session}/prompts/${id}`, { delivery: "steer" });
  }

  async resume() {
    await this.#ask("POST", `/sessions/${this.state.session}/resume`, {});
  }

  async #ask(method, path, body) {
    try {
      await call(method, path, body);
      return true;
    } catch (error) {
      this.view.thaw();
      this.#refresh();
      this.view.announce(error instanceof ApiError ? error.message : "The server could not be reached");
      return false;
    }
  }

  // A new chat

  /** The session gets its id here, so that creating it again after a lost answer gives the same one. */
  #begin(text) {
    const session = newId("ses");
    this.outbox.keepDraft("new", "");
    this.state.session = session;
    this.state.title = titleOf(text);
    this.connection.session = session;
    document.body.classList.remove("is-new");
    this.chosen = this.composer.chosen;
    this.outbox.keepSession(session, { title: this.state.title, chosen: this.chosen, tab: tabId(), at: Date.now() });
    this.#create(0);
  }

  async #create(failures) {
    const { session, title } = this.state;
    this.creation = undefined;
    try {
      const created = await call("POST", "/sessions", { id: session, title, ...this.chosen });
      const { agent, model, recovery_policy: policy } = created;
      Object.assign(this.state, { agent, model, policy: policy ?? "" });
      this.outbox.forgetSession(session);
      window.history.pushState(null, "", `/s/${session}`);
      this.path = window.location.pathname;
      this.#titled();
      this.sidebar.add({ id: session, title });
      Menu.attach(this.root, { session, title });
      this.pickers.show();
      this.connection.connect();
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) return this.#refuseAll(error);
      const delay = backoff(failures);
      this.strip.lost(delay);
      this.creation = setTimeout(() => this.#create(failures + 1), delay);
    }
  }

  #titled() {
    document.title = `${this.state.title} · Holdfast`;
    this.view.showStatus();
  }

  #refuseAll(error) {
    for (const prompt of this.state.outgoing.values()) {
      Object.assign(prompt, { phase: "refused", code: error.code, detail: error.message });
    }
    this.outbox.forgetSession(this.state.session);
    this.view.showPrompts();
  }

  /** A reload came before the answer to "create": go on with it. Other tabs see to their own. */
  #resumeCreation() {
    const mine = this.outbox.newSessions().filter(({ tab, at }) => tab === tabId() || Date.now() - at > 60000);
    if (mine.length === 0) return;
    const { session, title, chosen } = mine[0];
    Object.assign(this.state, { session, title });
    this.chosen = chosen;
    this.connection.session = session;
    document.body.classList.remove("is-new");
    for (const prompt of this.outbox.prompts(session)) this.#track(prompt);
    this.view.showPrompts();
    this.#create(0);
  }
}

/** Copy the text of the box below a heading. */
function copyCode(button) {
  return copied(button, button.closest(".code-head").nextElementSibling.textContent);
}

async function copied(label, text) {
  await navigator.clipboard?.writeText(text);
  label.textContent = "Copied";
  setTimeout(() => (label.textContent = "Copy"), 2000);
}

function tabId() {
  let tab = window.sessionStorage.getItem("holdfast:tab");
  if (tab === null) {
    tab = newId("tab");
    window.sessionStorage.setItem("holdfast:tab", tab);
  }
  return tab;
}

function startChat(root) {
  const chat = new Chat(root);
  chat.start();
  document.querySelector("[data-slot=suggestions]")?.addEventListener("click", ({ target }) => {
    const text = target.closest("[data-text]")?.dataset.text;
    if (text !== undefined) chat.send(text, "steer");
  });
  window.addEventListener("popstate", () => {
    // Opening the list of chats on a phone changes the fragment only.
    if (window.location.pathname !== chat.path) window.location.reload();
  });
}

document.documentElement.classList.add("scripts");
watchPopups();
const root = document.getElementById("chat");
const leave = document.querySelector("[data-role=sign-out]");
leave.addEventListener("submit", () => new Outbox({ storage: window.localStorage, user: root.dataset.user }).clear());
if (root.dataset.newest !== "false") startChat(root);
