// What goes together with an item: a dialog from which items are added to the taste.

import { $, el, groupOf, icon, named, nameOf, plural } from "./dom.js";

export class Similar {
  #asked = 0; // answers to older clicks are dropped

  // `find` asks for the items; `has`, `add` and `remove` are those of the taste.
  constructor(dialog, { find, has, add, remove, failed }) {
    Object.assign(this, { dialog, find, has, add, remove, failed });
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog) dialog.close(); // beside it
    });
    dialog.addEventListener("close", () => {
      if (document.activeElement === document.body) $("results-heading").focus(); // the row that opened it is gone
    });
  }

  close() {
    if (this.dialog.open) this.dialog.close();
  }

  // `trail` is the way that led here, item by item.
  async open(item, trail = []) {
    const mine = (this.#asked += 1);
    let found;
    try {
      found = await this.find(item);
    } catch (error) {
      this.close();
      return this.failed(error);
    }
    if (mine !== this.#asked) return;
    const heading = el("h2", { id: "similar-heading", tabindex: "-1" },
      el("span", { class: "eyebrow" }, "Goes together with"), named(found.item));
    this.dialog.replaceChildren(
      el("div", { class: "dialog-head" },
        this.#back(trail), heading, this.#round("cross", "Close", () => this.close())),
      el("p", { class: "facts" }, plural(found.item.popularity, "user"), groupOf(found.item), this.#toggle(found.item)),
      el("ol", { class: "likes", role: "list", "aria-label": "Similar items" },
        ...found.items.map((other) => this.#row(other, [...trail, item]))),
    );
    if (!this.dialog.open) this.dialog.showModal();
    heading.focus();
  }

  #row(item, trail) {
    const similarity = `similarity ${item.similarity.toFixed(2)}`;
    return el("li", {},
      el("button", { type: "button", class: "title", onclick: () => this.open(item, trail) }, named(item)),
      el("span", { class: "note" }, plural(item.popularity, "user"), groupOf(item), similarity),
      this.#toggle(item));
  }

  #back(trail) {
    if (trail.length === 0) return null;
    const last = trail.at(-1);
    return this.#round("back", `Back to ${nameOf(last)}`, () => this.open(last, trail.slice(0, -1)));
  }

  #round(shape, label, onclick) {
    return el("button", { type: "button", class: "round", "aria-label": label, onclick }, icon(shape));
  }

  // Adds an item to the taste, or takes it out again.
  #toggle(item) {
    const show = () => {
      const on = this.has(item);
      button.setAttribute("aria-pressed", on);
      button.replaceChildren(icon(on ? "tick" : "plus"), on ? "Added" : "Add");
    };
    const click = () => {
      if (this.has(item)) this.remove(item);
      else this.add(item);
      show();
    };
    const label = `In your taste: ${nameOf(item)}`;
    const button = el("button", { type: "button", class: "toggle", "aria-label": label, onclick: click });
    show();
    return button;
  }
}
