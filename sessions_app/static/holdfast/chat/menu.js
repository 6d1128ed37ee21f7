// The menu of a chat.

import { deleteSoon } from "./deleting.js";

export class Menu {
  /** `session` and `isRunning` are asked when something is chosen. */
  constructor({ root, session, isRunning }) {
    Object.assign(this, { session, isRunning });
    this.menu = root.querySelector("[data-menu]");
    this.menu.querySelector("[data-role=delete]").addEventListener("click", (event) => this.#delete(event));
  }

  /** A chat that this page has just created has a menu, too. */
  static attach(root, { session, title }) {
    for (const element of root.querySelectorAll("[data-menu] :is(form, a), [data-slot=foot] form, .dock form")) {
      const name = element.matches("a") ? "href" : "action";
      element.setAttribute(name, element.getAttribute(name).replace(/\/new(?=\/)/, `/${session}`));
    }
    const menu = root.querySelector("[data-menu]");
    menu.querySelector("[name=title]").value = title;
    menu.hidden = false;
  }

  #delete(event) {
    event.preventDefault();
    this.menu.open = false;
    deleteSoon({
      session: this.session(),
      isRunning: this.isRunning(),
      onDone: () => window.location.assign("/"),
    });
  }
}
