// The transcript on the page. Text goes in as text: nothing a model wrote is ever parsed as markup.

import { fold, showCall } from "./calls.js";
import { attemptCard, callCard, showCard, showTimes } from "./cards.js";
import { copyOf, say, setText, slot } from "./markup.js";
import { Formatted } from "./markdown.js";
import { newestMessage, undecided } from "./transcript.js";
import { RUNNING, again, bannerWords, line, note, pill, retryWords, sessionNote, thoughts } from "./words.js";

const NEAR_THE_END = 48;
const SLOW = 9000;
const VERY_SLOW = 60000;
const FOLDED_AFTER = 1000;
const ABOVE_THE_QUESTION = 16;
const TURNS = new Set(["user", "synthetic", "assistant"]);

export class View {
  /** `acts` are what the buttons of waiting prompts do: withdraw, editPending, steer, sendNow, edit, keepBoth, discard. */
  constructor({ root, state, words, acts }) {
    Object.assign(this, { root, state, words, acts });
    this.messages = new Map();
    this.texts = new Map();
    this.formatted = new Map();
    this.markdown = null;
    this.frozen = false;
    this.isLost = false;
    this.following = true;
    this.lastTop = 0;
    this.isAnchored = false;
    this.opensReasoning = document.documentElement.dataset.reasoning === "open";
    this.heardAt = Date.now();
    for (const name of ["scroller", "flow", "spacer", "transcript", "ahead", "tray", "tray-rows", "paused", "pill", "announcer"]) {
      this[name] = slot(root, name);
    }
    this.jump = root.querySelector('[data-role="jump"]');
    this.#adopt();
    this.#watchScrolling();
  }

  /** From now on answers are shown formatted. */
  format(markdown) {
    this.markdown = markdown;
    for (const id of Array.from(this.state.parts.keys()).reverse()) this.#format(id);
  }

  #format(id) {
    const part = this.state.parts.get(id);
    if (this.markdown === null || part.kind !== "text") return;
    const place = slot(this.texts.get(id).closest("[data-part]"), "formatted");
    if (!this.formatted.has(id)) this.formatted.set(id, new Formatted({ place, markdown: this.markdown }));
    this.formatted.get(id).update(part.text, { isFinal: part.state !== "open" });
  }

  /** Show what changed. */
  redo(changes) {
    for (const change of changes) this.#redo(change);
  }

  #redo({ kind, id, text }) {
    if (["message", "part", "append"].includes(kind)) this.heardAt = Date.now();
    if (kind === "append") return this.#append(id, text);
    if (kind === "part") this.#showPart(id);
    if (kind === "emptied") this.#empty(id);
    if (kind === "hidden") this.#hide(id);
    if (kind === "message") this.#showMessage(id);
    if (kind === "prompts") this.showPrompts();
    this.showStatus();
  }

  // The transcript

  /** Take over what the server rendered. */
  #adopt() {
    for (const element of this.transcript.querySelectorAll("[data-message]")) {
      this.messages.set(element.dataset.message, element);
    }
    for (const element of this.transcript.querySelectorAll("[data-part]")) {
      this.texts.set(element.dataset.part, slot(element, "text"));
    }
  }

  /** Messages of an earlier page, above what is read, which stays where it is. */
  putFirst(elements) {
    const below = this.scroller.scrollHeight - this.scroller.scrollTop;
    this.transcript.prepend(...elements);
    for (const element of elements) {
      this.messages.set(element.dataset.message, element);
      showTimes(element);
      for (const part of element.querySelectorAll("[data-part]")) {
        this.texts.set(part.dataset.part, slot(part, "text"));
        this.#format(part.dataset.part);
      }
    }
    this.scroller.scrollTop = this.scroller.scrollHeight - below;
  }

  #showMessage(id) {
    const message = this.state.messages.get(id);
    const element = this.messages.get(id) ?? this.#newMessage(message);
    element.dataset.state = message.state;
    if (message.type !== "assistant") return;
    const why = slot(element, "note");
    why.dataset.state = message.state;
    say(why, note(this.state, message, this.words));
    this.#showRetry(element, message);
    this.#showAttempts(message);
  }

  #hide(id) {
    this.#empty(id);
    this.messages.get(id)?.remove();
    this.messages.delete(id);
  }

  #empty(id) {
    const element = this.messages.get(id);
    for (const part of element?.querySelectorAll("[data-part]") ?? []) {
      this.texts.delete(part.dataset.part);
      this.formatted.delete(part.dataset.part);
      part.remove();
    }
  }

  #showRetry(element, message) {
    const place = slot(element, "retry");
    place.hidden = message.retry === null;
    if (message.retry === null) return;
    setText(slot(place, "retry-reason"), message.retry.reason);
    setText(slot(place, "retry-when"), retryWords(message.retry, this.words));
  }

  #showAttempts(message) {
    const place = slot(this.messages.get(message.id), "cards");
    const isNewest = message === this.#newestTurn();
    for (const attempt of message.attempts.values()) {
      showCard(place, attemptCard(this.state, message, attempt, { isNewest, words: this.words }));
    }
    for (const card of Array.from(place.children)) {
      if (!message.attempts.has(card.dataset.target)) card.remove();
    }
  }

  #newestTurn() {
    return Array.from(this.state.messages.values()).findLast(({ type }) => TURNS.has(type));
  }

  /** A newer turn takes the choice to try again away from the older ones. */
  #supersede(id) {
    for (const message of this.state.messages.values()) {
      if (message.id !== id && message.attempts.size > 0) this.#showAttempts(message);
    }
  }

  #newMessage(message) {
    const name = { user: "user", assistant: "assistant" }[message.type] ?? "line";
    const element = copyOf(name);
    element.id = message.id;
    element.dataset.message = message.id;
    element.dataset.seq = message.seq;
    element.dataset.type = message.type;
    element.classList.add("fresh");
    if (name === "user") {
      setText(slot(element, "text"), message.text);
      slot(element, "edit").href = `?edit=${message.id}`;
    }
    if (name === "line") fillLine(element, message, this.words);
    this.messages.set(message.id, element);
    this.transcript.append(element);
    this.#supersede(message.id);
    return element;
  }

  #showPart(id) {
    const part = this.state.parts.get(id);
    const text = this.texts.get(id) ?? this.#newPart(part);
    const element = text.closest("[data-part]");
    if (part.kind === "tool") return this.#showCall(element, part);
    element.dataset.state = part.state;
    setText(text, part.text);
    if (part.kind === "reasoning") this.#showReasoning(element, part);
    this.#format(id);
  }

  /** Open while it is written, if the reader wants that; folded soon after, unless the reader opened it. */
  #showReasoning(element, part) {
    const isOpen = part.state === "open";
    if (isOpen || part.seconds !== undefined) {
      setText(slot(element, "label"), thoughts(isOpen ? null : part.seconds, this.words));
    }
    const isNew = element.dataset.touched === undefined;
    if (isNew) element.querySelector("summary").addEventListener("click", () => (element.dataset.touched = "true"));
    if (isNew) element.dataset.touched = "false";
    if (isOpen && isNew) element.open = this.opensReasoning;
    if (isOpen || element.dataset.touched === "true") return;
    setTimeout(() => element.dataset.touched !== "true" && (element.open = false), FOLDED_AFTER);
  }

  #showCall(element, part) {
    showCall(element, part, this.words);
    const card = callCard(part, this.words);
    if (card === null) slot(element, "card")?.remove();
    else showCard(element, card);
    fold(slot(this.messages.get(part.message), "parts"), this.words);
  }

  #newPart(part) {
    const element = copyOf(part.kind);
    Object.assign(element.dataset, { part: part.id, index: part.index, kind: part.kind });
    const parts = slot(this.messages.get(part.message), "parts");
    const others = Array.from(parts.querySelectorAll("[data-part]"));
    const after = others.find((other) => Number(other.dataset.index) > part.index);
    (after?.parentNode ?? parts).insertBefore(element, after ?? null);
    const text = slot(element, "text");
    this.texts.set(part.id, text);
    return text;
  }

  #append(id, text) {
    if (this.frozen) return;
    const element = this.texts.get(id);
    if (element.lastChild === null) element.append(text);
    else element.lastChild.appendData(text);
    this.#format(id);
  }

  /** Stop: the text stands still at once, whatever still arrives. */
  freeze() {
    this.frozen = true;
    this.showStatus();
  }

  thaw() {
    if (!this.frozen) return;
    this.frozen = false;
    for (const part of this.state.parts.values()) if (part.state === "open") this.#showPart(part.id);
  }

  // Prompts that are not in the transcript yet

  /** While something runs or is paused they wait above the composer, else at the end of the transcript. */
  showPrompts() {
    const prompts = [...this.state.pending.values(), ...this.state.outgoing.values()];
    const inTray = this.#waitsInTray();
    this.paused.hidden = !(this.state.status?.paused && this.state.pending.size > 0);
    this.#placePrompts(prompts, inTray);
    this.tray.hidden = this["tray-rows"].childElementCount === 0 && this.paused.hidden;
  }

  /** Elements are made anew only when something about them changed: a button must not vanish under a click. */
  #placePrompts(prompts, inTray) {
    const isQueued = this.state.status?.state === "queued";
    const facts = prompts.map(({ id, phase, delivery, code }) => [id, phase, delivery, code]);
    const shown = JSON.stringify([inTray, isQueued, facts]);
    if (shown === this.shownPrompts) return;
    this.shownPrompts = shown;
    const rows = prompts.filter((prompt) => inTray && !asksForHelp(prompt));
    const bubbles = prompts.filter((prompt) => !inTray || asksForHelp(prompt));
    this["tray-rows"].replaceChildren(...rows.map((prompt) => this.#row(prompt)));
    this.ahead.replaceChildren(...bubbles.map((prompt) => this.#bubble(prompt)));
  }

  #waitsInTray() {
    const status = this.state.status;
    const answering = newestMessage(this.state)?.state === "running";
    return answering || status?.paused || ["busy", "retrying", "waiting"].includes(status?.state);
  }

  #row(prompt) {
    const row = copyOf("tray-row");
    row.dataset.prompt = prompt.id;
    setText(slot(row, "text"), prompt.text);
    const when = prompt.delivery === "queue" ? "Queued" : "Read at the next step";
    setText(slot(row, "when"), prompt.phase === "sending" ? "Sending…" : when);
    this.#offer(row, "withdraw", prompt, () => this.acts.withdraw(prompt.id));
    this.#offer(row, "edit-pending", prompt, () => this.acts.editPending(prompt));
    this.#offer(row, "steer", prompt, () => this.acts.steer(prompt.id));
    if (prompt.delivery !== "queue") row.querySelector('[data-role="steer"]').hidden = true;
    return row;
  }

  #offer(row, role, prompt, act) {
    const offered = row.querySelector(`[data-role="${role}"]`);
    offered.hidden = prompt.phase !== undefined;
    offered.addEventListener("click", act);
  }

  #bubble(prompt) {
    const element = copyOf("user");
    element.dataset.prompt = prompt.id;
    element.dataset.phase = prompt.phase ?? "pending";
    setText(slot(element, "text"), prompt.text);
    const label = slot(element, "note");
    label.hidden = false;
    label.append(...this.#label(prompt));
    return element;
  }

  #label(prompt) {
    const { acts } = this;
    switch (prompt.phase) {
      case "sending":
        return ["Sending…"];
      case "unsent":
        return [
          "Not sent yet – will send when connected",
          button("Send now", () => acts.sendNow(prompt.id)),
          button("Edit", () => acts.edit(prompt.id)),
        ];
      case "refused":
        return prompt.code === "prompt_conflict"
          ? [
              "This message was already sent with different text",
              button("Keep both", () => acts.keepBoth(prompt.id)),
              button("Discard mine", () => acts.discard(prompt.id)),
            ]
          : [prompt.detail, button("Edit", () => acts.edit(prompt.id)), button("Discard", () => acts.discard(prompt.id))];
      default:
        return this.state.status?.state === "queued" ? [] : ["Waiting to be read"];
    }
  }

  // What the session is doing

  showStatus() {
    const { state, words } = this;
    const key = this.#pillKey();
    this.pill.dataset.pill = key;
    say(slot(this.pill, "pill-words"), key === "" ? "" : words.pills[key] + this.#waited(key));
    this.pill.hidden = key === "";
    say(slot(this.root, "session-note"), sessionNote(state.status, words));
    setText(slot(this.root, "session-title"), state.session === null ? "New chat" : state.title || "Untitled chat");
    this.#showStaged();
    this.#showPlaceholder(key);
    this.#showBanner();
    this.#showFoot();
  }

  /** What can be done with the last answer, when nothing runs and nothing is to be decided first. */
  #showFoot() {
    const foot = slot(this.root, "foot");
    if (foot === null) return;
    const question = Array.from(this.state.messages.values()).findLast(({ type }) => type === "user");
    const settled = this.state.status?.state === "idle";
    foot.hidden = !(settled && question !== undefined && newestMessage(this.state)?.type === "assistant");
    if (foot.hidden) return;
    const newest = newestMessage(this.state);
    foot.querySelector("[name=replaces]").value = question.id;
    slot(foot, "go-on").hidden = newest.state !== "interrupted";
    setText(slot(foot, "again"), again(newest, this.words));
    slot(foot, "edit-last").href = `?edit=${question.id}`;
    for (const help of foot.querySelectorAll("[data-slot=edit-last], [data-role=switch-model]")) {
      help.hidden = newest.state !== "failed";
    }
    foot.querySelector("[data-role=copy-answer]").hidden = this.answer === "";
  }

  /** What the next message takes the place of, if somebody said so beforehand. */
  #showStaged() {
    const { staged } = this.state;
    const strip = slot(this.root, "staged");
    if (strip !== null) strip.hidden = staged === "" || this.root.querySelector(".composer [name=replaces]") !== null;
    if (staged === this.shownStaged) return;
    this.shownStaged = staged;
    for (const [id, element] of this.messages) element.toggleAttribute("data-staged", id === staged);
  }

  /** The text of the newest answer. */
  get answer() {
    const parts = newestMessage(this.state)?.parts.map((id) => this.state.parts.get(id)) ?? [];
    return parts.filter(({ kind }) => kind === "text").map(({ text }) => text).join("\n\n");
  }

  #showBanner() {
    const open = undecided(this.state);
    say(slot(this.root, "banner-words"), bannerWords(open.length, this.words));
    slot(this.root, "banner").hidden = open.length === 0;
    this.#showElsewhere();
    const shown = this.root.querySelectorAll('[data-slot="card"][data-decided="false"]');
    const first = Array.from(shown).find(({ id }) => open.includes(id));
    const link = slot(this.root, "banner-first");
    link.hidden = open.length === 0;
    // What was hidden while the page stood open comes up with the page.
    link.href = first === undefined ? location.pathname : `#${first.id}`;
  }

  /** Of what is not in the transcript of this page only that remains which nobody decided. */
  #showElsewhere() {
    const elsewhere = slot(this.root, "elsewhere");
    if (elsewhere === null || this.state.status === null) return;
    const { attempts, tools } = this.state.status.unknown;
    for (const card of elsewhere.querySelectorAll("[data-card]")) {
      if (![...attempts, ...tools].includes(card.id)) card.remove();
    }
    elsewhere.hidden = elsewhere.querySelector("[data-card]") === null;
  }

  /** What counts down. */
  tick() {
    const newest = newestMessage(this.state);
    if (newest?.retry) this.#showRetry(this.messages.get(newest.id), newest);
    this.showStatus();
  }

  /** Without a connection nobody knows whether something still runs. */
  #pillKey() {
    if (this.isRunning && this.isLost) return "lost";
    return this.frozen ? "stopping" : pill(this.state, newestMessage(this.state));
  }

  /** An answer that has no text yet says what it waits for, and only while somebody really works on it. */
  #showPlaceholder(key) {
    const newest = newestMessage(this.state);
    const element = newest === null ? undefined : this.messages.get(newest.id);
    if (this.waiting !== undefined && this.waiting !== element) slot(this.waiting, "placeholder").hidden = true;
    this.waiting = newest?.type === "assistant" ? element : undefined;
    if (this.waiting === undefined) return;
    const isEmpty = newest.parts.length === 0 && newest.state === "running" && newest.retry === null;
    const waits = isEmpty && ["model", "retrying", "queued"].includes(key);
    say(slot(element, "placeholder"), waits ? `${this.words.pills[key]}…` : "");
  }

  #waited(key) {
    if (!["model", "thinking", "answering"].includes(key)) return "";
    const quiet = this.state.status?.owner_quiet_since;
    if (quiet) return ` · no sign of life for ${Math.max(1, Math.floor((Date.now() - Date.parse(quiet)) / 1000))} s`;
    const silent = Date.now() - this.heardAt;
    if (silent < SLOW) return "";
    return silent < VERY_SLOW ? " · still waiting" : ` · no text for ${Math.floor(silent / 1000)} s`;
  }

  announce(text) {
    setText(this.announcer, text);
  }

  get isRunning() {
    return RUNNING.has(this.state.status?.state);
  }

  // Scrolling

  /** From here on the place of the reader is not touched, until they come to the end. */
  stay() {
    this.following = false;
    this.jump.hidden = false;
  }

  /** Follow the end until the reader scrolls up. */
  followAgain() {
    this.following = true;
    this.#follow();
  }

  /** After sending: the question goes to the top, and its answer grows below it. */
  anchor() {
    this.isAnchored = true;
    this.followAgain();
  }

  /** Room below the end, so that the newest question can stand at the top. */
  #makeRoom() {
    const questions = this.flow.querySelectorAll(".turn.user");
    const question = questions.item(questions.length - 1);
    if (!this.isAnchored || question === null) return;
    const needed = this.flow.getBoundingClientRect().bottom - question.getBoundingClientRect().top;
    const { paddingBottom } = getComputedStyle(this.flow.parentElement);
    const room = this.scroller.clientHeight - needed - parseFloat(paddingBottom) - ABOVE_THE_QUESTION;
    this.spacer.style.height = `${Math.max(0, Math.floor(room))}px`;
  }

  #follow() {
    this.#makeRoom();
    if (this.following) this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  /** What grows, above or below the edge of the view, is followed before it is painted. */
  #watchScrolling() {
    const sizes = new ResizeObserver(() => this.#follow());
    sizes.observe(this.scroller);
    sizes.observe(this.flow);
    this.scroller.addEventListener(
      "scroll",
      () => {
        const { scrollHeight, scrollTop, clientHeight } = this.scroller;
        // What came since may have moved the end away; only a reader moves up.
        if (scrollHeight - scrollTop - clientHeight < NEAR_THE_END) this.following = true;
        else if (scrollTop < this.lastTop - 1) this.following = false;
        this.lastTop = scrollTop;
        this.jump.hidden = this.following;
      },
      { passive: true },
    );
    this.jump.addEventListener("click", () => this.followAgain());
  }
}

function asksForHelp(prompt) {
  return prompt.phase === "refused" || prompt.phase === "unsent";
}

function fillLine(element, message, words) {
  setText(slot(element, "line"), line(message, words));
  slot(element, "details").hidden = message.text === "";
  setText(slot(element, "text"), message.text);
}

function button(words, act) {
  const element = document.createElement("button");
  element.type = "button";
  element.className = "quiet";
  element.textContent = words;
  element.addEventListener("click", act);
  return element;
}
