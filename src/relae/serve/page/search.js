// The search field: an ARIA combobox with a list of what was found.

import { el, named, plural } from "./dom.js";

const PAUSE = 120; // ms without a key before the service is asked
const SHOWN = 10;

export function combobox({ input, popup, list, note, find, choose, chosen, failed }) {
  let options = [];
  let active = -1;
  let timer = 0;
  let turn = 0; // answers to older questions are dropped
  let stale = false; // the list answers an older question than the field asks

  const isOpen = () => !popup.hidden;

  function close() {
    clearTimeout(timer);
    turn += 1;
    popup.hidden = true;
    options = [];
    point(-1);
    input.setAttribute("aria-expanded", "false");
  }

  function point(index) {
    active = index;
    [...list.children].forEach((option, i) => option.setAttribute("aria-selected", i === index));
    if (index < 0) return input.removeAttribute("aria-activedescendant");
    input.setAttribute("aria-activedescendant", list.children[index].id);
    list.children[index].scrollIntoView({ block: "nearest" });
  }

  function show({ items, total }) {
    stale = false;
    options = items;
    list.replaceChildren(...items.map((item, i) => optionOf(item, i)));
    list.hidden = items.length === 0;
    note.textContent = items.length === 0 ? "Nothing found. Fewer or shorter words find more."
      : total > items.length ? `${plural(total, "item")} found, the best ${items.length} are shown` : "";
    note.hidden = note.textContent === "";
    popup.hidden = false;
    input.setAttribute("aria-expanded", "true");
    point(items.length > 0 && input.value.trim() !== "" ? 0 : -1);
  }

  function optionOf(item, i) {
    const taken = chosen(item);
    const attributes = { role: "option", id: `found-${i}`, "aria-selected": "false", "aria-disabled": taken || null };
    return el("li", { ...attributes, onclick: () => pick(i) },
      el("span", { class: "option-name" }, named(item)),
      el("span", { class: "option-note" }, taken ? "in your taste" : plural(item.popularity, "user")));
  }

  function pick(index) {
    const item = options[index];
    if (!item || chosen(item)) return;
    input.value = "";
    close();
    choose(item);
  }

  async function look() {
    clearTimeout(timer);
    const mine = (turn += 1);
    try {
      const answer = await find(input.value.trim(), SHOWN);
      if (mine === turn && document.activeElement === input) show(answer);
      return mine === turn;
    } catch (error) {
      if (mine === turn) {
        close();
        failed(error);
      }
      return false;
    }
  }

  input.addEventListener("input", () => {
    clearTimeout(timer);
    stale = true;
    if (input.value.trim() === "") return close();
    timer = setTimeout(look, PAUSE);
  });

  input.addEventListener("keydown", async (event) => {
    if (event.isComposing) return;
    const { key } = event;
    if (key === "ArrowDown" || key === "ArrowUp") {
      event.preventDefault();
      if (!isOpen()) await look();
      else if (options.length > 0) {
        const step = key === "ArrowDown" ? 1 : -1;
        return point((Math.max(active, step > 0 ? -1 : 0) + step + options.length) % options.length);
      }
      if (isOpen() && active < 0 && options.length > 0) point(key === "ArrowDown" ? 0 : options.length - 1);
    } else if (key === "Enter" && input.value.trim() !== "" && (stale || !isOpen())) {
      event.preventDefault(); // quicker than the list: take what it is about to offer first
      if (await look()) pick(0);
    } else if (key === "Enter" && isOpen()) {
      event.preventDefault();
      if (active >= 0) pick(active);
    } else if (key === "Escape" && (isOpen() || input.value !== "")) {
      event.preventDefault();
      if (!isOpen()) input.value = "";
      close();
    } else if (key === "Tab") {
      close();
    }
  });

  input.addEventListener("blur", close);
  popup.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps the focus
}
