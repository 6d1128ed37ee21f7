// The socket of one session: connects, reconnects, asks for what is missing.

import { call } from "./api.js";

const LOST = { first: 500, longest: 8000 };
const OVERLOADED = { first: 1000, longest: 30000 };
const OVERLOADS = [429, 502, 503];
const SYNC_PAUSE = 400;
const SILENCE = 45000;

/** The wait before the next try, in milliseconds: doubling, with jitter so that readers spread out. */
export function backoff(failures, random = Math.random(), isOverloaded = false) {
  const { first, longest } = isOverloaded ? OVERLOADED : LOST;
  const full = Math.min(longest, first * 2 ** failures);
  return full * (0.5 + random / 2);
}

export class Connection {
  /**
   * `after` gives the seq to go on from; `onFrame` gets each frame; `onChange` hears of the connection:
   * "open", "lost" with the delay to the next try, "gone" (no such session), "signed-out".
   */
  constructor({ session, after, onFrame, onChange }) {
    Object.assign(this, { session, after, onFrame, onChange });
    this.socket = null;
    this.failures = 0;
    this.isOverloaded = false;
    this.timer = null;
    this.silence = null;
    this.syncTimer = null;
    this.syncedAt = -Infinity;
    this.started = false;
    this.ended = false;
    window.addEventListener("online", () => this.retryNow());
    window.addEventListener("offline", () => this.#drop());
    window.addEventListener("pageshow", (event) => event.persisted && this.retryNow());
  }

  get isOpen() {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  connect() {
    clearTimeout(this.timer);
    this.started = true;
    if (this.ended) return;
    const url = new URL(`/ws/sessions/${this.session}`, window.location.href);
    url.protocol = url.protocol.replace("http", "ws");
    url.searchParams.set("after", this.after());
    const socket = new WebSocket(url);
    this.socket = socket;
    socket.addEventListener("open", () => this.#opened(socket));
    socket.addEventListener("message", (message) => this.#received(socket, message));
    socket.addEventListener("close", (event) => this.#closed(socket, event));
  }

  /** Try at once. Before the first connect() there is nothing to try. */
  retryNow() {
    if (!this.started) return;
    this.failures = 0;
    this.#drop();
    this.connect();
  }

  /** Send a frame if the socket is open; returns whether it was. */
  send(frame) {
    if (!this.isOpen) return false;
    this.socket.send(JSON.stringify(frame));
    return true;
  }

  /** Ask for what is missing; not in a hurry after the first time, since the answer may be on its way. */
  sync() {
    if (this.syncTimer !== null) return;
    const wait = Math.max(0, this.syncedAt + SYNC_PAUSE - performance.now());
    this.syncTimer = setTimeout(() => {
      this.syncTimer = null;
      this.syncedAt = performance.now();
      this.send({ t: "sync", after: this.after() });
    }, wait);
  }

  #opened(socket) {
    if (socket !== this.socket) return;
    this.failures = 0;
    this.isOverloaded = false;
    this.#heard();
    this.onChange("open");
  }

  #received(socket, message) {
    if (socket !== this.socket) return;
    this.#heard();
    this.onFrame(JSON.parse(message.data));
  }

  /** A socket that misses three pings is dead without knowing it. */
  #heard() {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => this.retryNow(), SILENCE);
  }

  #drop() {
    const socket = this.socket;
    if (socket === null) return;
    this.#closed(socket, { code: 1006 });
    socket.close();
  }

  #closed(socket, { code }) {
    if (socket !== this.socket) return;
    this.socket = null;
    clearTimeout(this.silence);
    if (code === 4404) return this.#end("gone");
    if (code === 4401) return this.#end("signed-out");
    const delay = backoff(this.failures, Math.random(), this.isOverloaded);
    this.failures += 1;
    this.timer = setTimeout(() => this.connect(), delay);
    this.onChange("lost", delay);
    if (this.failures > 1) this.#diagnose();
  }

  /** A refused handshake looks like a lost network to a page; the API tells them apart. */
  async #diagnose() {
    try {
      await call("GET", `/sessions/${this.session}/status`);
      this.isOverloaded = false;
    } catch (error) {
      this.isOverloaded = OVERLOADS.includes(error.status);
      if (error.status === 404) this.#end("gone");
      if (error.status === 401 || error.status === 403) this.#end("signed-out");
    }
  }

  #end(how) {
    this.ended = true;
    clearTimeout(this.timer);
    this.onChange(how);
  }
}
