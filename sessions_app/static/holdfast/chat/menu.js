// The menu of a chat. Deleting is held back for a moment, in which it can be undone.

import { call } from "./api.js";

const HELD_BACK = 10000;

export class Menu {
  constructor({ root, session }) {
    this.session = session;
    this.menu = root.querySelector("[data-role=menu]");
    document.addEventListener("keydown", (event) => this.#pressed(event));
    if (this.menu === null) return;
    document.addEventListener("click", ({ target }) => {
      if (!this.menu.contains(target)) this.menu.open = false;
    });
    this.menu.querySelector("[data-role=delete]").addEventListener("click", (event) => this.#delete(event));
  }

  /** A chat that this page has just created has a menu, too. */
  static attach(root, { session, title, model }) {
    for (const element of root.querySelectorAll("[data-role=menu] :is(form, a), [data-slot=foot] form")) {
      const name = element.matches("a") ? "href" : "action";
      element.setAttribute(name, element.getAttribute(name).replace(/\/new(?=\/)/, `/${session}`));
    }
    const menu = root.querySelector("[data-role=menu]");
    menu.querySelector("[name=title]").value = title;
    menu.querySelector("[name=model]").value = model;
    menu.hidden = false;
  }

  #pressed(event) {
    if (event.key === "k" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      document.getElementById("search").focus();
    }
    if (event.key === "Escape" && this.menu?.open) {
      this.menu.open = false;
      this.menu.querySelector("summary").focus();
    }
  }

  #delete(event) {
    event.preventDefault();
    this.menu.open = false;
    const toast = document.createElement("div");
    toast.className = "toast";
    toast.setAttribute("role", "alert");
    const undo = document.createElement("button");
    Object.assign(undo, { type: "button", className: "quiet", textContent: "Undo" });
    toast.append("This chat is deleted in 10 seconds.", undo);
    document.body.append(toast);
    const leave = () => this.#finish();
    const timer = setTimeout(() => this.#finish().then(() => window.location.assign("/")), HELD_BACK);
    window.addEventListener("pagehide", leave);
    undo.addEventListener("click", () => {
      clearTimeout(timer);
      window.removeEventListener("pagehide", leave);
      toast.remove();
    });
  }

  /** Who leaves the page has not undone it. */
  async #finish() {
    await call("DELETE", `/sessions/${this.session()}`, undefined, { keepalive: true }).catch(() => {});
  }
}
