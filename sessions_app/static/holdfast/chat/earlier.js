// Earlier messages: fetched when the reader comes near them, put in front without moving what is read.

import { setText, slot } from "./markup.js";
import { readEarlier } from "./page.js";

const NEAR = "600px";
const QUIET = 150;

export class Earlier {
  constructor({ root, state, view }) {
    Object.assign(this, { state, view });
    this.link = slot(root, "earlier");
    this.loading = false;
    if (this.link === null) return;
    this.words = this.link.textContent;
    this.link.addEventListener("click", (event) => {
      event.preventDefault();
      this.load();
    });
    this.watch = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && this.load(), {
      root: view.scroller,
      rootMargin: `${NEAR} 0px 0px`,
    });
    this.watch.observe(this.link);
  }

  async load() {
    if (this.loading) return;
    this.loading = true;
    const telling = setTimeout(() => setText(this.link, "Loading earlier messages…"), QUIET);
    try {
      const page = await fetchPage(this.link.href);
      this.view.putFirst(readEarlier(page, this.state));
      this.#follow(slot(page, "earlier"));
    } catch {
      clearTimeout(telling);
      setText(this.link, "Earlier messages could not be loaded. Try again");
    } finally {
      clearTimeout(telling);
      this.loading = false;
    }
  }

  /** To the page before that one; looked at anew, since the link may still be near. */
  #follow(next) {
    this.watch.disconnect();
    if (next === null) return this.link.remove();
    this.link.setAttribute("href", next.getAttribute("href"));
    setText(this.link, this.words);
    return this.watch.observe(this.link);
  }
}

async function fetchPage(address) {
  const response = await fetch(address, { credentials: "same-origin" });
  if (!response.ok || response.redirected) throw new Error(`The server answered ${response.status}.`);
  return new DOMParser().parseFromString(await response.text(), "text/html");
}
