// The list of chats: made by the server, fetched anew from time to time, marked by what this page knows.

import { call } from "./api.js";
import { deleteSoon } from "./deleting.js";
import { copyOf, slot } from "./markup.js";

const REFRESH = 20000;

export class Sidebar {
  /** `seen` remembers until when each chat was read in this browser. */
  constructor({ root, words, seen, current }) {
    Object.assign(this, { words, seen, current });
    this.list = slot(root, "chat-list");
    this.popup = copyOf("row-menu");
    this.list.after(this.popup);
    this.list.addEventListener("click", (event) => this.#clicked(event));
    this.popup.addEventListener("click", (event) => this.#chosen(event));
    document.addEventListener("visibilitychange", () => this.refresh());
    document.addEventListener("keydown", (event) => searchPressed(event));
    // A search looks into every message: it is repeated when something was done, not by the clock.
    if (!new URL(window.location.href).searchParams.has("q")) setInterval(() => this.refresh(), REFRESH);
    this.#dress();
  }

  /** A chat that this page has just created, as the current one. */
  add({ id, title }) {
    const row = copyOf("chat-row");
    const link = row.querySelector("a");
    link.href = `/s/${id}`;
    link.dataset.chat = id;
    link.dataset.active = "";
    link.setAttribute("aria-current", "page");
    this.current = id;
    this.#today().prepend(row);
    this.#dress();
    this.show(id, { title, state: "idle" });
  }

  /** What the open chat is doing, known before the list is. */
  show(id, { title, state, endedAs = "" }) {
    this.known = { id, title, state, endedAs };
    const link = this.list.querySelector(`[data-chat="${id}"]`);
    if (link === null) return;
    slot(link, "title").textContent = title || "Untitled chat";
    mark(link, this.words.marks[state] ?? this.words.marks[endedAs] ?? ["", ""]);
  }

  /** Other chats go on, in other tabs and by themselves. */
  async refresh() {
    if (document.hidden || this.isBusy) return;
    try {
      const address = new URL("/chats", window.location.href);
      for (const name of ["q", "chats"]) keep(address, name);
      if (this.current) address.searchParams.set("current", this.current);
      const response = await fetch(address, { credentials: "same-origin" });
      if (response.ok && !response.redirected) this.#replace(await response.text());
    } catch {
      // The connection strip speaks for the network; the next round tries again.
    }
  }

  #replace(html) {
    if (html === this.html || this.isBusy) return;
    this.html = html;
    const focused = this.list.contains(document.activeElement) ? document.activeElement : null;
    const chat = focused?.closest("li")?.querySelector("[data-chat]").dataset.chat;
    const page = new DOMParser().parseFromString(html, "text/html");
    this.list.replaceChildren(...page.body.childNodes);
    this.#dress();
    if (this.known) this.show(this.known.id, this.known);
    if (chat) this.list.querySelector(`[data-chat="${chat}"]`)?.focus();
  }

  /** A button for more on each row, and a hollow dot where something came since it was read. */
  #dress() {
    for (const link of this.list.querySelectorAll("[data-chat]")) {
      if (link.nextElementSibling === null) link.after(moreButton(link));
      const { chat, active } = link.dataset;
      if (chat === this.current) this.seen.keepSeen(chat, active);
      else if (slot(link, "mark").dataset.mark === "" && this.seen.isNews(chat, active)) {
        mark(link, this.words.marks.unread);
      }
    }
  }

  get isBusy() {
    return this.popup.matches(":popover-open") || this.list.querySelector(".row-rename") !== null;
  }

  #today() {
    const sections = Array.from(this.list.querySelectorAll("section"));
    const found = sections.find((each) => each.querySelector("h2").textContent === "Today");
    if (found !== undefined) return found.querySelector("ul");
    const section = document.createElement("section");
    const heading = document.createElement("h2");
    heading.textContent = "Today";
    section.append(heading, document.createElement("ul"));
    const pinned = sections.find((each) => each.querySelector("h2").textContent === "Pinned");
    if (pinned === undefined) this.list.prepend(section);
    else pinned.after(section);
    return section.querySelector("ul");
  }

  // The menu of a row

  #clicked({ target }) {
    const button = target.closest("[data-role=row-menu]");
    if (button === null) return;
    const link = button.previousElementSibling;
    this.open = { link, button, session: link.dataset.chat };
    const place = button.getBoundingClientRect();
    slot(this.popup, "row-pin").textContent = "pinned" in link.dataset ? "Unpin" : "Pin to the top";
    slot(this.popup, "row-archive").textContent = "archived" in link.dataset ? "Back from the archive" : "Archive";
    for (const format of ["markdown", "json"]) {
      slot(this.popup, `row-${format}`).href = `/api/v1/sessions/${link.dataset.chat}/export?format=${format}`;
    }
    this.popup.showPopover();
    const top = Math.min(place.bottom + 4, window.innerHeight - this.popup.offsetHeight - 8);
    const left = Math.min(place.left, window.innerWidth - this.popup.offsetWidth - 8);
    Object.assign(this.popup.style, { top: `${top}px`, left: `${left}px` });
    this.popup.querySelector("button").focus();
  }

  #chosen({ target }) {
    const act = target.closest("[data-act]")?.dataset.act;
    if (act === undefined) return;
    this.popup.hidePopover();
    const { link, session } = this.open;
    if (act === "rename") this.#rename(link);
    if (act === "pin") this.#change(session, { pinned: !("pinned" in link.dataset) });
    if (act === "archive") this.#change(session, { archived: !("archived" in link.dataset) });
    if (act === "delete") this.#delete(link, session);
  }

  async #change(session, fields) {
    await call("PATCH", `/sessions/${session}`, fields).catch(() => {});
    await this.refresh();
  }

  /** In place: Enter keeps the new title, Escape the old one. */
  #rename(link) {
    const field = document.createElement("input");
    const old = slot(link, "title").textContent;
    Object.assign(field, { className: "row-rename", value: old, maxLength: 200 });
    field.setAttribute("aria-label", "New title");
    link.hidden = true;
    link.before(field);
    field.select();
    let hasEnded = false;
    const end = async (title) => {
      // Removing the field takes the focus from it, which ends it again.
      if (hasEnded) return;
      hasEnded = true;
      field.remove();
      link.hidden = false;
      link.focus();
      if (title && title !== old) await this.#change(link.dataset.chat, { title });
    };
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") end(field.value.trim());
      if (event.key === "Escape") {
        event.stopPropagation();
        end("");
      }
    });
    field.addEventListener("blur", () => end(field.value.trim()));
  }

  #delete(link, session) {
    const isOpen = session === this.current;
    deleteSoon({
      session,
      isRunning: slot(link, "mark").dataset.mark === "running",
      onDone: () => (isOpen ? window.location.assign("/") : this.refresh()),
    });
  }
}

function mark(link, [name, words]) {
  const element = slot(link, "mark");
  element.dataset.mark = name;
  element.title = words;
  slot(link, "words").textContent = words;
}

function moreButton(link) {
  const button = copyOf("row-more");
  button.setAttribute("aria-label", `More for ${slot(link, "title").textContent}`);
  return button;
}

function keep(address, name) {
  const value = new URL(window.location.href).searchParams.get(name);
  if (value) address.searchParams.set(name, value);
}

function searchPressed(event) {
  if (event.key !== "k" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  document.getElementById("search").focus();
}
