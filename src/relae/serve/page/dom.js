// Small helpers. Whatever comes from the data goes in as text nodes and attributes, never as markup.

export const $ = (id) => document.getElementById(id);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

export const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);

export const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

const SHAPES = {
  plus: "M10 4v12M4 10h12",
  cross: "m5 5 10 10M15 5 5 15",
  back: "m12.5 4-6 6 6 6",
  tick: "m4 10.5 4 4 8-9",
};

export const icon = (name) =>
  svg("svg", { viewBox: "0 0 20 20", class: "icon", "aria-hidden": "true" }, svg("path", { d: SHAPES[name] }));

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const percent = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 0 });

export const count = (value) => whole.format(value);
export const about = (value) => (value >= 100 ? whole : short).format(value);
export const share = (value) => percent.format(value).replace("%", "\u202f%");
export const plural = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;

// "a", "a and b", "a, b and c"
export const listed = (words) => [words.slice(0, -1).join(", "), words.at(-1)].filter(Boolean).join(" and ");

// An item without a title is called by its id.
export const nameOf = (item) => (item.title && item.title.trim() ? item.title : String(item.item));

export const named = (item) => el("bdi", {}, nameOf(item));

export const groupOf = ({ group }) =>
  el("span", { class: `group ${group}` }, group === "tail" ? "long tail" : "popular");

// Text for screen readers only.
export const spoken = (text) => el("span", { class: "hidden-text" }, text);

export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
