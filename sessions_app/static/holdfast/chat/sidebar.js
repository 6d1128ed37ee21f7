// The list of chats: a new one appears on top, and marks follow the sessions' states.

import { call } from "./api.js";

const REFRESH = 20000;
const MARKS = {
  busy: ["running", "Running"],
  queued: ["running", "Queued"],
  retrying: ["running", "Trying again"],
  waiting: ["decision", "Waiting for you"],
  needs_decision: ["decision", "Outcome unknown"],
  orphaned: ["decision", "Interrupted"],
};

const slot = (element, name) => element.querySelector(`[data-slot="${name}"]`);

export class Sidebar {
  constructor({ root }) {
    this.list = slot(root, "chat-list");
    document.addEventListener("visibilitychange", () => this.refresh());
    setInterval(() => this.refresh(), REFRESH);
  }

  /** A chat that this page has just created, as the current one. */
  add({ id, title }) {
    const row = document.getElementById("template-chat-row").content.firstElementChild.cloneNode(true);
    const link = row.querySelector("a");
    link.href = `/s/${id}`;
    link.dataset.chat = id;
    link.setAttribute("aria-current", "page");
    this.#today().prepend(row);
    this.show(id, { title, state: "idle" });
  }

  show(id, { title, state }) {
    const row = this.list.querySelector(`[data-chat="${id}"]`);
    if (row === null) return;
    const [mark, words] = MARKS[state] ?? ["", ""];
    slot(row, "title").textContent = title || "Untitled chat";
    slot(row, "mark").dataset.mark = mark;
    slot(row, "mark").title = words;
    slot(row, "words").textContent = words;
  }

  /** Marks of sessions that this page does not follow would else go stale. */
  async refresh() {
    if (document.hidden) return;
    try {
      const { results } = await call("GET", "/sessions?limit=50");
      for (const { id, title, status } of results) this.show(id, { title, state: status.state });
    } catch {
      // The connection strip speaks for the network; the next round tries again.
    }
  }

  #today() {
    const first = this.list.querySelector("section");
    if (first !== null && first.querySelector("h2").textContent === "Today") return first.querySelector("ul");
    const section = document.createElement("section");
    const heading = document.createElement("h2");
    heading.textContent = "Today";
    section.append(heading, document.createElement("ul"));
    this.list.prepend(section);
    return section.querySelector("ul");
  }
}
