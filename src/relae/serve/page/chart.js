// How the list's popularity moves along a dial: two small drawings over one axis, which is the dial's own.

import { about, share, svg } from "./dom.js";

const INSET = 11; // half of the dial's thumb, so that both have the same axis
const LABEL = 20;
const HEIGHT = 44;
const GAP = 14;

export class Chart {
  #path = [];
  #along = "";
  #now = null;
  #width = 0;

  // `move` is told where on the axis, from 0 to 1, the pointer is; `end` that it was let go.
  constructor(host, { move, end }) {
    this.host = host;
    new ResizeObserver(() => {
      if (host.clientWidth !== this.#width) this.#draw();
    }).observe(host);
    const at = (event) => {
      const box = host.getBoundingClientRect();
      move(Math.min(1, Math.max(0, (event.clientX - box.left - INSET) / (box.width - 2 * INSET))));
    };
    host.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      host.setPointerCapture(event.pointerId);
      at(event);
    });
    host.addEventListener("pointermove", (event) => {
      if (host.hasPointerCapture(event.pointerId)) at(event);
    });
    host.addEventListener("lostpointercapture", end);
  }

  // The path as [{at: 0…1, popularity, tail_share}…]; `along` says which way it goes.
  show(path, along = "") {
    this.#path = path;
    this.#along = along;
    this.#draw();
  }

  // The list that is shown: {at: 0…1, own: 0…1, popularity, tail_share, words}.
  set now(now) {
    this.#now = now;
    this.#draw();
  }

  #draw() {
    this.#width = this.host.clientWidth;
    if (this.#path.length < 2 || this.#now === null || this.#width === 0) return this.host.replaceChildren();
    const users = [...this.#path.map((point) => point.popularity), this.#now.popularity];
    const tails = [...this.#path.map((point) => point.tail_share), this.#now.tail_share];
    const [width, height] = [this.#width, 2 * (LABEL + HEIGHT) + GAP + 2];
    this.host.replaceChildren(
      svg(
        "svg",
        { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": this.#words(users, tails) },
        ...this.#panel(0, "users per item", users, usersRange(users), about, "plain"),
        ...this.#panel(LABEL + HEIGHT + GAP, "in the long tail", tails, tailsRange(tails), share, "accent"),
      ),
    );
  }

  #x(at) {
    return INSET + at * (this.#width - 2 * INSET);
  }

  // The last of the values is that of the list that is shown; the others are the path's.
  #panel(top, name, values, [least, most], written, kind) {
    const base = top + LABEL + HEIGHT;
    const y = (value) => base - 3 - ((value - least) / (most - least)) * (HEIGHT - 9);
    const [path, now] = [values.slice(0, -1), values.at(-1)];
    const points = path.map((value, i) => `${this.#x(this.#path[i].at).toFixed(1)} ${y(value).toFixed(1)}`);
    const line = `M${points.join("L")}`;
    const upright = (at, name) =>
      svg("line", { class: name, x1: this.#x(at), x2: this.#x(at), y1: top + LABEL, y2: base });
    const ends = `${written(path[0])} → ${written(path.at(-1))}`;
    return [
      least === 0 ? svg("path", { class: "area", d: `${line}V${base}H${this.#x(0)}Z` }) : null,
      svg("line", { class: "base", x1: this.#x(0), x2: this.#x(1), y1: base, y2: base }),
      upright(this.#now.own, "own"),
      svg("path", { class: `line ${kind}`, d: line }),
      upright(this.#now.at, "here"),
      svg("circle", { class: `dot ${kind}`, cx: this.#x(this.#now.at), cy: y(now), r: 4.5 }),
      svg("text", { x: INSET, y: top + 13 }, svg("tspan", { class: `value ${kind}` }, written(now)), ` ${name}`),
      svg("text", { class: "range", x: this.#width - INSET, y: top + 13, "text-anchor": "end" }, ends),
    ];
  }

  #words(users, tails) {
    const over = (values, written) => `${written(values[0])} to ${written(values.at(-2))}`;
    return `From ${this.#along}, users per item go from ${over(users, about)} ` +
      `and the share of the long tail from ${over(tails, share)}. ` +
      `Now: ${about(users.at(-1))} users per item, ${share(tails.at(-1))} in the long tail.`;
  }
}

// Popularity is drawn as a line on a scale that shows its changes, but never makes much of less than a third.
function usersRange(values) {
  const most = Math.max(...values, 1);
  return [Math.min(...values, (2 / 3) * most), most];
}

// Shares start at 0 and end at a quarter, a half, three or all, so that the scale does not jump about.
const tailsRange = (values) => [0, Math.min(1, Math.max(0.25, Math.ceil(Math.max(...values) * 4 - 1e-9) / 4))];
