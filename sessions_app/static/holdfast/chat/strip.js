// The strip above the composer: silent while the connection is healthy.

const PATIENCE = 2000;
const CATCHING_UP_AFTER = 400;

export class Strip {
  constructor({ root, onRetry }) {
    this.element = root.querySelector('[data-slot="connection"]');
    this.words = root.querySelector('[data-slot="connection-words"]');
    this.retry = root.querySelector('[data-role="reconnect"]');
    this.signIn = root.querySelector('[data-role="sign-in"]');
    this.lostAt = null;
    this.timer = null;
    this.retry.addEventListener("click", onRetry);
  }

  /** Connected; what was missed is on its way. */
  open() {
    clearInterval(this.timer);
    const wasShown = !this.element.hidden;
    this.lostAt = null;
    this.wasLost = wasShown;
    if (wasShown) this.#say("Connected");
    this.timer = setTimeout(() => this.#say("Catching up…"), CATCHING_UP_AFTER);
  }

  /** Nothing is missing any more. */
  caughtUp() {
    if (this.lostAt !== null || this.wasLost === undefined) return;
    clearInterval(this.timer);
    if (this.wasLost) this.#say("Connected");
    this.timer = setTimeout(() => (this.element.hidden = true), this.wasLost ? PATIENCE : 0);
    this.wasLost = undefined;
  }

  /** Whether the connection is lost for longer than a moment. */
  get isLost() {
    return this.lostAt !== null && Date.now() - this.lostAt >= PATIENCE;
  }

  /** Speaks up when the loss lasts: a short one is nobody's business. */
  lost(delay) {
    clearInterval(this.timer);
    this.lostAt ??= Date.now();
    const tryAt = Date.now() + delay;
    const show = () => {
      if (!this.isLost) return;
      const seconds = Math.max(0, Math.ceil((tryAt - Date.now()) / 1000));
      const when = seconds > 0 ? `Reconnecting in ${seconds} s` : "Reconnecting…";
      this.#say(`Connection lost. Your text is safe. ${when}`, { retry: true });
    };
    show();
    this.timer = setInterval(show, 250);
  }

  gone() {
    this.#end("This chat does not exist any more.");
  }

  signedOut() {
    this.#end("You are signed out. Your text is safe.", { signIn: true });
  }

  #end(words, offers) {
    clearInterval(this.timer);
    this.#say(words, offers);
  }

  #say(words, { retry = false, signIn = false } = {}) {
    this.words.textContent = words;
    this.retry.hidden = !retry;
    this.signIn.hidden = !signIn;
    this.element.hidden = false;
  }
}
