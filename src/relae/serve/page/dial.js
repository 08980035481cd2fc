// The dials: where a value lies between its ends, what the hand does, and which end is the long tail.

import { el } from "./dom.js";

export const STEPS = 100;

export class Scale {
  // From `low` to `high`, which the rounding of the ends may pass, but not the `limits`; `own` is the model's. With a
  // `power` above 1 the steps are finer near `low`.
  constructor([low, high], own, limits, { signed = false, power = 1 } = {}) {
    Object.assign(this, { low, high, own, limits, signed, power });
    const least = (high - low) / STEPS ** power; // the first step
    this.digits = least > 0 ? Math.min(8, Math.max(2, Math.ceil(-Math.log10(least) - 1e-9))) : 3;
  }

  // The place of a value on the dial, from 0 to 1.
  at(value) {
    if (this.high <= this.low) return 0;
    return Math.min(1, Math.max(0, (value - this.low) / (this.high - this.low))) ** (1 / this.power);
  }

  // The value at a place.
  #from(at) {
    return this.low + (this.high - this.low) * at ** this.power;
  }

  step(value) {
    return Math.round(this.at(value) * STEPS);
  }

  // The value of a step; null stands for the model's own. The ends are rounded outwards, so that they are reached.
  value(step) {
    if (step === this.step(this.own)) return null;
    const unit = 10 ** this.digits;
    const round = step <= 0 ? Math.floor : step >= STEPS ? Math.ceil : Math.round;
    const [least, most] = this.limits;
    return Math.min(most, Math.max(least, round(this.#from(step / STEPS) * unit) / unit));
  }

  // Some values from end to end.
  spread(points) {
    return Array.from({ length: points }, (_, i) => Number(this.#from(i / Math.max(1, points - 1)).toFixed(6)));
  }

  written(value) {
    const sign = !this.signed ? "" : value > 0 ? "+" : value < 0 ? "−" : "";
    return sign + (this.signed ? Math.abs(value) : value).toFixed(this.digits);
  }
}

// A slider with its value, the way back to the model's own, and the names of its ends.
export class Knob {
  scale = null;

  // `field` is what the service calls it, `name` and `label` what a person does. `along` says which way it goes, `path`
  // what its path is asked for with (null: it has none), and `read` what there is to say of that path.
  constructor(host, { field, name, label, along, path, read }, { turn, rest }) {
    Object.assign(this, { host, field, name, label, along, path, read, turn: (step) => turn(this, step), rest });
    const slider = { id: field, type: "range", min: 0, max: STEPS, step: 1, "aria-describedby": `${field}-words` };
    this.input = el("input", { ...slider, oninput: () => this.turn(Number(this.input.value)), onchange: rest });
    this.output = el("output", { id: `${field}-value`, for: field });
    this.back = el("button", { type: "button", class: "link", onclick: () => this.#goBack() });
    this.mark = el("span", { class: "own-mark", "aria-hidden": "true" });
    [this.low, this.high, this.brief] = ["low", "high", "brief"].map((part) => el("span", { class: part }));
    this.words = el("p", { class: "words", id: `${field}-words` });
    host.append(
      el("div", { class: "dial-line" }, el("label", { for: field }, `${label} `, this.output), this.back),
      el("div", { class: "track" }, el("span", { class: "rail", "aria-hidden": "true" }), this.mark, this.input),
      el("div", { class: "ends", "aria-hidden": "true" }, this.low, this.brief, this.high),
      this.words,
    );
  }

  #goBack() {
    this.turn(this.scale.step(this.scale.own));
    this.rest();
    this.input.focus();
  }

  // `value` null is the model's own; `found` says what is there.
  show(value, found = "") {
    const { own } = this.scale;
    const written = this.scale.written(value ?? own);
    this.input.value = this.scale.step(value ?? own);
    this.input.setAttribute("aria-valuetext", `${this.name} ${written}${found}`);
    this.output.textContent = written;
    this.back.textContent = value === null ? "model’s own" : `Back to ${this.scale.written(own)}`;
    this.back.setAttribute("aria-label", `${this.name}: ${this.back.textContent}`);
    this.back.disabled = value === null;
    this.mark.style.setProperty("--at", this.scale.at(own));
  }

  // What the ends are called, which of them is the long tail ("low", "high" or "none"), and what is said of it.
  describe({ low, high, tail, words }) {
    this.host.dataset.tail = tail;
    [this.low.textContent, this.high.textContent] = [low, high];
    this.input.setAttribute("aria-label", `${this.label}, from ${low} to ${high}`);
    this.words.textContent = words;
  }
}

const change = (from, to, slack = 0) => (Math.abs(to - from) <= slack ? 0 : Math.sign(to - from));
const order = (point) => point.items.join("\n");

// What a path of lists shows: whether they differ, and how users per item and the share of the tail move.
function motion(path) {
  const [first, last] = [path[0], path.at(-1)];
  return {
    still: path.every((point) => order(point) === order(first)),
    users: change(first.popularity, last.popularity, 0.01 * first.popularity),
    tail: change(first.tail_share, last.tail_share),
  };
}

// On most data a larger ξ means more of the long tail, but not for every list. What the ends of the dial are called,
// and what is said of them, is read from this list's own path; without one, only what ξ is.
const PLAIN = { low: "smaller ξ", high: "larger ξ", tail: "none" };

export function ofXi(path = null) {
  if (path === null) return { ...PLAIN, words: "How much an item may count for itself." };
  const { still, users, tail } = motion(path);
  if (still) return { ...PLAIN, words: "No ξ changes this list." };
  if (tail === 0 && users === 0) return { ...PLAIN, words: "For this list the ends of ξ are equally popular." };
  if (tail * users > 0) {
    const [tails, more] = tail > 0 ? ["more", "more"] : ["less", "fewer"];
    const words = `For this list a larger ξ brings ${tails} of the long tail, and yet ${more} users per item.`;
    return { ...PLAIN, words };
  }
  const [low, high] = tail === 0 ? ["more popular", "less popular"] : ["popular", "long tail"];
  const what = tail === 0 ? "less popular items, and no more of the long tail" : "more of the long tail";
  if (tail > 0 || users < 0) return { low, high, tail: "high", words: `A larger ξ brings ${what}.` };
  return { low: high, high: low, tail: "low", words: `For this list it is the smaller ξ that brings ${what}.` };
}

// Rarity holds popular items back: its ends are what they are called, unless there is little to choose from.
export function ofRarity(path = null) {
  const ends = { low: "popular", high: "rare", tail: "high", words: "Further right is what fewer people have." };
  if (path === null) return ends;
  const { still, users, tail } = motion(path);
  if (still) return { ...ends, words: "Rarity does not change this list." };
  if (users < 0 || (users === 0 && tail > 0)) return ends;
  return { ...ends, tail: "none", words: "For this list the right end is no rarer than the left one." };
}

// Freshness adds what is in demand now, counted so that it halves in so many days.
export function ofFreshness(days) {
  const span = days === 1 ? "a day" : `${Number(days.toPrecision(3))} days`;
  const words = `Further right is what is in demand now. What was wanted ${span} ago counts half.`;
  return { low: "timeless", high: "fresh", tail: "none", words };
}
