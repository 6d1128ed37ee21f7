// Agent, model and recovery policy: chosen in the header, at once, and shown as the log says.

import { ApiError, call } from "./api.js";
import { copyOf, say, setText, slot } from "./markup.js";

const BY_DEFAULT = "default";

export class Pickers {
  /** `composer` keeps what is chosen for a chat that does not exist yet. */
  constructor({ root, state, composer, words }) {
    Object.assign(this, { root, state, composer, words });
    root.addEventListener("submit", (event) => this.#submitted(event));
    const models = root.querySelector("[data-picker=model]");
    models.addEventListener("toggle", () => models.open && this.#loadModels(models));
  }

  /** The models come when they are wanted. Without an answer the link to a page that holds them stays. */
  async #loadModels(picker) {
    const link = picker.querySelector("[data-role=all-models]");
    if (link === null || this.isLoading) return;
    this.isLoading = true;
    try {
      const { results } = await call("GET", "/models");
      const current = slot(picker, "model").textContent;
      const others = results.some(({ name }) => name === current) ? [] : [{ name: current, label: current, configured: true }];
      picker.querySelector("form").append(...[...others, ...results].map((model) => this.#row(model, current)));
      link.remove();
    } catch {
      // Nothing is lost: a model can be written, and the link works.
    } finally {
      this.isLoading = false;
    }
  }

  #row({ name, label, configured }, current) {
    const row = copyOf("choice");
    Object.assign(row, { name: "model", value: name, disabled: !configured });
    row.setAttribute("aria-pressed", name === current);
    setText(slot(row, "choice-label"), label);
    setText(slot(row, "choice-detail"), configured ? name : this.words.no_key);
    return row;
  }

  /** Show what the chat has. A new one has what the page came with until something is chosen. */
  show() {
    const { agent, model, policy, session } = this.state;
    if (session === null) return;
    this.#show("agent", agent, agent);
    this.#show("model", model, model);
    this.#showPolicy(policy || BY_DEFAULT);
  }

  /** By default it is the agent's policy, or the site's. */
  #showPolicy(value) {
    const byDefault = this.root.querySelector("[data-picker=agent] [aria-pressed=true]")?.dataset.policy;
    const row = this.root.querySelector(`[data-picker=recovery_policy] [value="${BY_DEFAULT}"]`);
    if (byDefault !== undefined) row.dataset.shown = byDefault;
    this.#show("recovery_policy", value, value === BY_DEFAULT ? row.dataset.shown : this.words.policies[value]);
  }

  #show(name, value, shown) {
    const picker = this.root.querySelector(`[data-picker="${name}"]`);
    if (picker === null || value === "") return;
    setText(slot(picker, name), shown);
    for (const choice of picker.querySelectorAll(".choice-row")) {
      choice.setAttribute("aria-pressed", choice.value === value);
    }
  }

  #submitted(event) {
    const picker = event.target.closest("[data-picker]");
    if (picker === null) return;
    event.preventDefault();
    const name = picker.dataset.picker;
    const row = event.submitter?.matches(".choice-row") ? event.submitter : null;
    const value = row?.value ?? event.target.elements.namedItem(name).value.trim();
    if (value === "") return;
    if (this.state.session === null) this.#chooseForNew(picker, name, value, row);
    else this.#change(picker, name, value);
  }

  /** An agent brings its model along, unless a model was chosen for itself. */
  #chooseForNew(picker, name, value, row) {
    this.composer.choose(name, name === "recovery_policy" && value === BY_DEFAULT ? "" : value);
    if (name !== "recovery_policy") this.#show(name, value, value);
    const { model, recovery_policy: policy } = this.composer.chosen;
    this.#showPolicy(policy ?? BY_DEFAULT);
    if (name === "agent" && !model) this.#show("model", row.dataset.model, row.dataset.model);
    this.#close(picker);
  }

  async #change(picker, name, value) {
    const refusal = slot(picker, "picker-refusal");
    try {
      const changed = await call("PATCH", `/sessions/${this.state.session}`, {
        [name]: name === "recovery_policy" && value === BY_DEFAULT ? null : value,
      });
      const { agent, model, recovery_policy: policy } = changed;
      Object.assign(this.state, { agent, model, policy: policy ?? "" });
      say(refusal, "");
      this.show();
      this.#close(picker);
    } catch (error) {
      say(refusal, error instanceof ApiError ? error.message : "The server could not be reached. Nothing was changed.");
    }
  }

  #close(picker) {
    picker.open = false;
    picker.querySelector("summary").focus();
  }
}
