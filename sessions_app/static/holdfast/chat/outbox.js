// Prompts that the database has not confirmed, and the draft: kept in this browser until it has.
//
// Each prompt has a key of its own, so that two tabs never overwrite each other's.

export class Outbox {
  constructor({ storage, user }) {
    this.storage = storage;
    this.prefix = `holdfast:${user}:`;
  }

  /** Prompts of the session that were sent and not confirmed, oldest first. */
  prompts(session) {
    const prefix = `${this.prefix}prompt:${session}:`;
    const found = this.#keys(prefix).map((key) => this.#read(key)).filter(Boolean);
    return found.sort((one, other) => one.at - other.at);
  }

  keep(session, { id, text, delivery, at }) {
    this.#write(`${this.prefix}prompt:${session}:${id}`, { id, text, delivery, at });
  }

  forget(session, id) {
    this.storage.removeItem(`${this.prefix}prompt:${session}:${id}`);
  }

  /** Sessions whose creation was not confirmed. */
  newSessions() {
    return this.#keys(`${this.prefix}new:`).map((key) => this.#read(key)).filter(Boolean);
  }

  /** `chosen` goes with it: agent, model, recovery policy. */
  keepSession(session, { title, chosen, tab, at }) {
    this.#write(`${this.prefix}new:${session}`, { session, title, chosen, tab, at });
  }

  forgetSession(session) {
    this.storage.removeItem(`${this.prefix}new:${session}`);
  }

  draft(session) {
    return this.storage.getItem(`${this.prefix}draft:${session}`) ?? "";
  }

  keepDraft(session, text) {
    const key = `${this.prefix}draft:${session}`;
    if (text === "") this.storage.removeItem(key);
    else this.#try(() => this.storage.setItem(key, text));
  }

  /** Until when a chat was read in this browser; times of the server, which sort as text. */
  keepSeen(session, at) {
    const key = `${this.prefix}seen:${session}`;
    if (at && at > (this.storage.getItem(key) ?? "")) this.#try(() => this.storage.setItem(key, at));
  }

  /** Whether something came since. A chat that was never read here is no news. */
  isNews(session, at) {
    const seen = this.storage.getItem(`${this.prefix}seen:${session}`);
    return seen !== null && at > seen;
  }

  /** Nothing of this user stays in the browser. */
  clear() {
    for (const key of this.#keys(this.prefix)) this.storage.removeItem(key);
  }

  #keys(prefix) {
    return Array.from({ length: this.storage.length }, (_, index) => this.storage.key(index)).filter((key) =>
      key.startsWith(prefix),
    );
  }

  #read(key) {
    try {
      return JSON.parse(this.storage.getItem(key));
    } catch {
      return null;
    }
  }

  #write(key, value) {
    this.#try(() => this.storage.setItem(key, JSON.stringify(value)));
  }

  /** A full store must not stop a prompt from being sent. */
  #try(write) {
    try {
      write();
    } catch (error) {
      console.warn("holdfast: the browser keeps no more drafts", error);
    }
  }
}
