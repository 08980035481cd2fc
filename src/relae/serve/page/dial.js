// The dial: where a ξ lies between the ends that matter, and which end is the long tail.

export const STEPS = 100;

export class Scale {
  // Outside of [low, high] no ξ changes a list; `own` is the model's.
  constructor([low, high], own) {
    Object.assign(this, { low, high, own });
    const step = (high - low) / STEPS;
    this.digits = step > 0 ? Math.min(8, Math.max(2, Math.ceil(-Math.log10(step)))) : 3;
  }

  // The place of a ξ on the dial, from 0 to 1.
  at(xi) {
    return this.high > this.low ? Math.min(1, Math.max(0, (xi - this.low) / (this.high - this.low))) : 0;
  }

  step(xi) {
    return Math.round(this.at(xi) * STEPS);
  }

  // The ξ of a step; null stands for the model's own. The ends are rounded outwards, so that they are reached.
  xi(step) {
    if (step === this.step(this.own)) return null;
    const unit = 10 ** this.digits;
    const round = step <= 0 ? Math.floor : step >= STEPS ? Math.ceil : Math.round;
    return Math.min(1, Math.max(0, round((this.low + ((this.high - this.low) * step) / STEPS) * unit) / unit));
  }

  written(xi) {
    return xi.toFixed(this.digits);
  }
}

// On most data a larger ξ means more of the long tail, but not for every list. What the ends of the dial are called,
// and what is said of them, is read from this list's own path: {low, high, tail: "low" | "high" | "none", words}.
export function describe(path) {
  const [first, last] = [path[0], path.at(-1)];
  const users = change(first.popularity, last.popularity, 0.01 * first.popularity);
  const tail = change(first.tail_share, last.tail_share);
  const plain = { low: "smaller ξ", high: "larger ξ", tail: "none" };
  const order = (point) => point.items.join("\n");
  if (path.every((point) => order(point) === order(first))) return { ...plain, words: "No ξ changes this list." };
  if (tail === 0 && users === 0) return { ...plain, words: "For this list the ends of the dial are equally popular." };
  if (tail * users > 0) {
    const [tails, more] = tail > 0 ? ["more", "more"] : ["less", "fewer"];
    const words = `For this list a larger ξ brings ${tails} of the long tail, and yet ${more} users per item.`;
    return { ...plain, words };
  }
  const [low, high] = tail === 0 ? ["more popular", "less popular"] : ["popular", "long tail"];
  const what = tail === 0 ? "less popular items, and no more of the long tail" : "more of the long tail";
  if (tail > 0 || users < 0) return { low, high, tail: "high", words: `A larger ξ brings ${what}.` };
  return { low: high, high: low, tail: "low", words: `For this list it is the smaller ξ that brings ${what}.` };
}

const change = (from, to, slack = 0) => (Math.abs(to - from) <= slack ? 0 : Math.sign(to - from));
