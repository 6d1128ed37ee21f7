// Where prompts are written. Send and Stop share one place; the draft outlives a reload.

export class Composer {
  /** `onSend(text, delivery)`, `onStop()` and `onDraft(text)` are told; the text leaves when it is sent. */
  constructor({ form, draft, onSend, onStop, onDraft }) {
    Object.assign(this, { form, onSend, onStop, onDraft });
    this.text = form.elements.namedItem("text");
    this.delivery = form.querySelector('[data-slot="delivery"]');
    this.sendButton = form.querySelector('[data-role="send"]');
    this.stopButton = form.querySelector('[data-role="stop"]');
    this.running = false;
    this.waiting = false;
    this.stopping = false;
    this.isSteering = false;
    this.replaces = form.elements.namedItem("replaces") !== null;
    if (this.text.value === "" && draft !== "") this.text.value = draft;
    form.addEventListener("submit", (event) => this.#submitted(event));
    this.text.addEventListener("keydown", (event) => this.#pressed(event));
    this.text.addEventListener("input", () => this.#typed());
    this.delivery.addEventListener("change", () => this.#refresh());
    this.stopButton.addEventListener("click", () => this.#stop());
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !event.isComposing) this.#stop();
    });
    this.#typed();
  }

  show({ running, waiting = false, stopping }) {
    if (this.running && !running) this.form.querySelector('[value="queue"]').checked = true;
    Object.assign(this, { running, waiting, stopping });
    this.#refresh();
  }

  /** What was chosen for a chat that does not exist yet. */
  get chosen() {
    const fields = ["agent", "model", "recovery_policy"].map((name) => [name, this.form.elements.namedItem(name)?.value]);
    return Object.fromEntries(fields.filter(([, value]) => value));
  }

  choose(name, value) {
    const field = this.form.elements.namedItem(name) ?? document.createElement("input");
    Object.assign(field, { type: "hidden", name, value });
    this.form.append(field);
  }

  /** Put a text back to be edited, in front of what is there. */
  put(text) {
    this.text.value = this.text.value === "" ? text : `${text}\n${this.text.value}`;
    this.#typed();
    this.text.focus();
  }

  /** What replaces an earlier message goes as a form: the page that comes back shows what is left. */
  #submitted(event) {
    if (this.replaces) return;
    event.preventDefault();
    const text = this.text.value;
    if (text.trim() === "") return;
    this.text.value = "";
    this.#typed();
    this.onSend(text, this.running ? this.#chosen() : "steer");
    this.isSteering = false;
    this.text.focus();
  }

  #chosen() {
    return this.isSteering ? "steer" : this.form.elements.namedItem("delivery").value || "steer";
  }

  /** With Ctrl or Command the model reads it at its next step, whatever is chosen. Enter that confirms a word of an input method is not Enter; on a touch keyboard it starts a line. */
  #pressed(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    if (window.matchMedia("(pointer: coarse)").matches) return;
    event.preventDefault();
    this.isSteering = event.ctrlKey || event.metaKey;
    this.form.requestSubmit();
  }

  #typed() {
    if (!this.replaces) this.onDraft(this.text.value);
    this.#fit();
    this.#refresh();
  }

  #stop() {
    if (this.running && !this.stopping) this.onStop();
  }

  #refresh() {
    const offersStop = this.running && this.text.value.trim() === "";
    const hadFocus = [this.sendButton, this.stopButton].includes(document.activeElement);
    this.sendButton.hidden = offersStop;
    this.stopButton.hidden = !offersStop;
    this.stopButton.disabled = this.stopping;
    this.stopButton.setAttribute("aria-label", this.stopping ? "Stopping…" : "Stop");
    this.delivery.hidden = !this.running;
    this.text.placeholder = this.#placeholder();
    if (hadFocus) this.text.focus();
  }

  #placeholder() {
    if (this.waiting) return "Waiting for your decision above";
    if (!this.running) return "Message…";
    return this.#chosen() === "queue" ? "Add to queue…" : "Add to this answer…";
  }

  /** Browsers that size fields by their content need no help. */
  #fit() {
    if (CSS.supports("field-sizing", "content")) return;
    this.text.style.height = "auto";
    this.text.style.height = `${this.text.scrollHeight}px`;
  }
}
