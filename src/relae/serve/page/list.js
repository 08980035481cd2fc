// The recommendations: rows that stay the same elements while they move.

import { calm, count, el, groupOf, icon, nameOf, named, plural, share, spoken } from "./dom.js";

const WORTH = 0.2; // of the first reason: one that counts for less is not worth a name
const MOVE = { duration: 320, easing: "cubic-bezier(.2, .7, .2, 1)" };

export class Rows {
  #rows = new Map(); // by id

  constructor(list, { like, deny, similar }) {
    Object.assign(this, { list, like, deny, similar, most: 1 });
  }

  get ids() {
    return [...this.list.children].map((row) => row.dataset.item);
  }

  // `before` maps ids to the ranks they had; without it nothing is marked as moved or new.
  show(items, before) {
    const focus = this.#focused();
    const tops = new Map([...this.#rows].map(([id, row]) => [id, row.node.getBoundingClientRect().top]));
    for (const row of this.#rows.values()) row.glide?.cancel();
    const rows = new Map();
    items.forEach((item, i) => {
      const id = String(item.item);
      rows.set(id, this.#rows.get(id) ?? this.#build(item));
      this.#update(rows.get(id), item, i, before);
    });
    this.#rows = rows;
    this.#arrange([...rows.values()].map((row) => row.node));
    if (!calm()) this.#animate(tops);
    if (focus) this.#refocus(focus);
  }

  // Only what is out of place is moved, so that nothing else loses the focus or the pointer.
  #arrange(nodes) {
    const wanted = new Set(nodes);
    for (const node of [...this.list.children]) if (!wanted.has(node)) node.remove();
    nodes.forEach((node, i) => {
      if (this.list.children[i] !== node) this.list.insertBefore(node, this.list.children[i] ?? null);
    });
  }

  // First, last, invert, play: each row starts where it was and glides to where it is.
  #animate(tops) {
    const moves = [...this.#rows].map(([id, row]) => [row, tops.get(id), row.node.getBoundingClientRect().top]);
    for (const [row, from, to] of moves) {
      if (from !== undefined && Math.abs(from - to) > 0.5)
        row.glide = row.node.animate([{ transform: `translateY(${from - to}px)` }, { transform: "none" }], MOVE);
      else if (from === undefined && tops.size > 0)
        row.glide = row.node.animate([{ opacity: 0 }, { opacity: 1 }], MOVE);
    }
  }

  #focused() {
    const element = document.activeElement;
    const row = element?.closest("#rows > li");
    return row ? { element, control: element.dataset.control, index: this.ids.indexOf(row.dataset.item) } : null;
  }

  // A row that was moved takes its focus along; one that is gone hands it to the row now in its place.
  #refocus({ element, control, index }) {
    if (document.activeElement === element) return;
    const place = this.list.children[Math.min(index, this.list.children.length - 1)];
    const target = element.isConnected ? element : place?.querySelector(`[data-control="${control}"]`);
    target?.focus({ preventScroll: true });
  }

  #build(item) {
    const known = { item: item.item, title: item.title, popularity: item.popularity, group: item.group };
    const row = {
      rank: el("span", { class: "rank" }),
      mark: el("span", { class: "mark" }),
      score: el("span", { class: "score" }),
      why: el("p", { class: "why" }),
    };
    row.node = el("li", { "data-item": String(item.item), class: "row" },
      el("div", { class: "place" }, row.rank, row.mark),
      el("div", { class: "what" }, this.#title(known), row.why),
      el("div", { class: "popularity" },
        el("span", {}, plural(item.popularity, "user")), groupOf(item), this.#bar(item)),
      el("div", { class: "points" }, spoken("score "), row.score),
      el("div", { class: "acts" },
        this.#act("like", "plus", "I like this too", known), this.#act("deny", "cross", "Not interested", known)),
    );
    return row;
  }

  #title(item) {
    if (!this.similar) return el("span", { class: "title" }, named(item));
    const attributes = { type: "button", class: "title", "aria-haspopup": "dialog", title: "Similar items" };
    return el("button", { ...attributes, "data-control": "title", onclick: () => this.similar(item) }, named(item));
  }

  // Users on a log scale, of the most that any item has.
  #bar({ popularity, group }) {
    const fill = el("span", { class: `bar-fill ${group}` });
    fill.style.width = `${(100 * Math.log1p(popularity)) / Math.log1p(Math.max(this.most, popularity, 1))}%`;
    return el("span", { class: "bar" }, fill);
  }

  #act(control, shape, label, item) {
    const click = (event) => {
      event.currentTarget.closest("li").classList.add("leaving");
      this[control](item);
    };
    const attributes = { type: "button", class: "round", title: label, "aria-label": `${label}: ${nameOf(item)}` };
    return el("button", { ...attributes, "data-control": control, onclick: click }, icon(shape));
  }

  #update(row, item, i, before) {
    row.node.classList.remove("leaving");
    row.rank.textContent = count(i + 1);
    row.score.textContent = scoreOf(item.score);
    const why = reasons(item);
    row.why.replaceChildren(...why);
    row.why.hidden = why.length === 0;
    const [kind, sign, words] = moved(before, String(item.item), i);
    row.mark.className = `mark ${kind}`;
    row.mark.replaceChildren(...(sign ? [el("span", { "aria-hidden": "true" }, sign), spoken(words)] : []));
  }
}

function moved(before, id, i) {
  if (!before) return ["", "", ""];
  if (!before.has(id)) return ["new", "new", "new"];
  const places = before.get(id) - i;
  if (places === 0) return ["", "", ""];
  return places > 0 ? ["up", `▲ ${places}`, `up ${places}`] : ["down", `▼ ${-places}`, `down ${-places}`];
}

// Items of the taste, and the demand for the item itself, the largest first.
function reasons({ because = [], demand_share: demand = 0 }) {
  const all = [...because, ...(demand > 0 ? [{ demand: true, share: demand }] : [])].sort((a, b) => b.share - a.share);
  const worth = all.filter((reason) => reason.share >= WORTH * all[0].share);
  const first = worth.find((reason) => !reason.demand);
  return worth.map((reason, i) =>
    el("span", { class: "reason" },
      i === 0 ? "" : ", ", reason === first ? "because of " : "", reason.demand ? "in demand now" : named(reason),
      " ", el("span", { class: "share" }, share(reason.share))));
}

const scoreOf = (score) => (Math.abs(score) >= 1000 ? count(score) : score.toFixed(Math.abs(score) >= 100 ? 1 : 3));
