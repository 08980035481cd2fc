// The page: one state, what is asked of the service for it, and what is shown.

import * as service from "./api.js";
import { Chart } from "./chart.js";
import { Knob, ofFreshness, ofRarity, ofXi, Scale, STEPS } from "./dial.js";
import { $, about, count, el, icon, listed, named, nameOf, plural, share } from "./dom.js";
import { DIALS, EMPTY, read, SIZES, UNTURNED, write } from "./link.js";
import { Rows } from "./list.js";
import { combobox } from "./search.js";
import { Similar } from "./similar.js";

const STARTERS = 12; // popular items to begin with
const WELL_KNOWN = 48; // of which a surprise is drawn
const SURPRISE = 3;
const SIMILAR = 10;
const AT_ONCE = 6; // titles asked for at a time
const RARITIES = [-0.5, 0.5]; // beyond them lists are of what everybody has, or of what next to nobody has
const FINER = 1.5; // the power by which freshness has finer steps near 0
const POINTS = 11; // of the path along rarity, each of which costs as much as a list

let state = { ...EMPTY };
let model = null;
let dialled = false; // whether the model has dials
let popular = [];
let answer = null; // what is shown
let answered = null; // the state it was asked for
let before = null; // {ranks, since, same}: what it is compared with
let settled = true; // the dial rests
const known = new Map(); // items by id

const idOf = (item) => String(item.item);
const itemOf = (id) => known.get(id) ?? { item: id, title: null };
const remember = (items) => items.forEach((item) => known.set(idOf(item), item));
const inTaste = (item) => state.taste.includes(idOf(item));
const hasTaste = () => state.taste.length > 0 || state.user !== null;
const atMost = (wanted) => Math.min(wanted, model?.limits?.k ?? wanted);

// --- what is said ----------------------------------------------------------------------------------------------

function notice(name, text, action = null) {
  clearNotice(name);
  const close = { type: "button", class: "round", "aria-label": "Close this message" };
  $("notices").append(
    el("div", { class: "notice", role: "alert", "data-name": name },
      el("p", {}, text),
      action && el("button", { type: "button", onclick: action.run }, action.name),
      el("button", { ...close, onclick: () => clearNotice(name) }, icon("cross"))),
  );
}

function clearNotice(name) {
  for (const node of [...$("notices").children]) if (node.dataset.name === name) node.remove();
}

let speaking = 0;

function announce(text, pause = 0) {
  clearTimeout(speaking);
  speaking = setTimeout(() => ($("live").textContent = text), pause);
}

function failed(error) {
  if (error.status === 401) return askForKey();
  if (!(error instanceof service.ServiceError)) {
    console.error(error);
    return notice("server", "Something in this page went wrong. Reloading it may help.");
  }
  notice("server", error.message, error.passing ? { name: "Try again", run: retry } : null);
}

function retry() {
  clearNotice("server");
  if (model === null) start();
  else refresh();
}

// --- the state and its link --------------------------------------------------------------------------------------

const address = () => {
  const hash = write(state);
  return hash ? `#${hash}` : location.pathname + location.search;
};

let writing = 0;

function remain(pause = 0) {
  clearTimeout(writing);
  writing = setTimeout(() => history.replaceState(null, "", address()), pause);
}

// A new taste is a new page in the browser's history; where the dial stands belongs to the page it is on.
function change(patch, { compare = true } = {}) {
  clearTimeout(writing);
  history.replaceState(null, "", address()); // with the dial where it stands
  state = { ...state, ...patch };
  history.pushState(null, "", address());
  before = compare ? compareWith("the last change", "before the last change") : null;
  refresh();
}

function restore() {
  const { state: wanted, problems } = read(location.hash);
  for (const [name, { called }] of Object.entries(DIALS)) {
    if (wanted[name] === null || model.dials.includes(name)) continue;
    const lack = dialled ? `has no ${called}` : "has no dials";
    problems.push(`The link asks for ${called} ${wanted[name]}, and this model ${lack}.`);
    wanted[name] = null;
  }
  if (write(wanted) === write(state) && problems.length === 0 && answer !== null) return;
  state = wanted;
  take(state.item_norm === null && state.xi !== null ? xi : rarity);
  before = null;
  leftOut = [];
  similar.close();
  if (problems.length > 0) notice("link", problems.join(" "));
  remain();
  refresh();
}

function add(item) {
  const id = idOf(item);
  remember([item]);
  if (inTaste(item)) return;
  clearNotice("taste");
  const most = model?.limits?.history ?? Infinity;
  if (state.taste.length >= most) {
    return notice("taste", `A taste has at most ${plural(most, "item")} here. Remove one to add another.`);
  }
  const { user } = state;
  change({ taste: [...state.taste, id], user: null, deny: state.deny.filter((other) => other !== id) });
  if (user !== null) notice("taste", `This is a taste of its own now. Back returns to that of user ${user}.`);
  announce(`${nameOf(item)} was added.`);
}

function removeFrom(name, id) {
  change({ [name]: state[name].filter((other) => other !== id) });
  announce(`${nameOf(itemOf(id))} was removed.`);
}

function deny(item) {
  remember([item]);
  change({ deny: [...state.deny, idOf(item)] });
  announce(`${nameOf(item)} is left out.`);
}

// What was clicked to begin with is gone now: the focus goes on to the recommendations.
function begin(item) {
  add(item);
  $("results-heading").focus({ preventScroll: true });
}

function surprise() {
  const pool = [...popular];
  const draw = () => pool.splice(Math.floor(Math.random() * pool.length), 1)[0];
  const taste = Array.from({ length: Math.min(SURPRISE, pool.length) }, draw);
  change({ taste: taste.map(idOf), user: null });
  $("results-heading").focus({ preventScroll: true });
}

// --- asking ----------------------------------------------------------------------------------------------------

const who = (asked) => (asked.user === null ? { history: asked.taste } : { user: asked.user });
const unturned = (asked) => write({ ...asked, ...UNTURNED });
const sameList = (a, b) => unturned(a) === unturned(b);

const dialsOf = (asked) => Object.fromEntries(Object.keys(DIALS).map((name) => [name, asked[name]]));

const wish = (asked) => ({ ...who(asked), k: atMost(asked.k), deny: asked.deny });

const ranking = new service.Latest(
  (asked) => service.recommend({ ...wish(asked), ...(dialled ? { ...dialsOf(asked), explain: true } : {}) }),
  (answer, asked) => {
    clearNotice("server");
    // One for an older place of the dial is a frame of its motion; one for another list is out of date.
    if (sameList(asked, state)) showAnswer(answer, asked);
  },
  listFailed,
);

// A path goes along one dial, while the others stand still.
const pathOf = (asked) => asked.along.field + write({ ...asked, [asked.along.field]: null });
const pathNow = () => ({ ...state, along: charting });

const paths = new service.Latest(
  (asked) => service.path({ ...wish(asked), ...dialsOf(asked), [asked.along.field]: null, ...asked.along.path() }),
  (answer, asked) => {
    if (pathOf(asked) === pathOf(pathNow())) showPath(answer.path, asked.along);
  },
  (error, asked) => {
    charted = null;
    listFailed(error, asked);
  },
);

let charted = null; // what the path on the chart is of, or will be

function askPath() {
  const asked = pathNow();
  if (charted === pathOf(asked)) return;
  charted = pathOf(asked);
  paths.ask(asked);
}

function refresh() {
  showTaste();
  showDials();
  $("board").hidden = !hasTaste();
  $("start").hidden = hasTaste();
  for (const radio of $("sizes").querySelectorAll("input")) radio.checked = Number(radio.value) === state.k;
  learnTitles();
  if (!hasTaste()) {
    answer = null;
    charted = null;
    rows.show([], null);
    return;
  }
  ranking.ask(state);
  if (dialled) askPath();
}

function listFailed(error, asked) {
  if (!sameList(asked, state)) return;
  if (error.field === "user" && asked.user !== null) {
    state = { ...state, user: null };
    remain();
    refresh();
    $("user").value = asked.user;
    return userFailed(error.message);
  }
  failed(error);
}

function userFailed(message) {
  $("user-error").textContent = message;
  $("user").setAttribute("aria-invalid", "true");
}

// Titles of items that a link names by id only; those that the model does not know are left out, with a word.
let learning = false;

async function learnTitles() {
  if (learning) return;
  learning = true;
  const strangers = new Set();
  const missing = () => [...state.taste, ...state.deny].filter((id) => !known.has(id) && !strangers.has(id));
  try {
    while (missing().length > 0) {
      await Promise.all(missing().slice(0, AT_ONCE).map(async (id) => {
        try {
          known.set(id, await service.item(id));
        } catch (error) {
          if (error.status !== 404) throw error;
          strangers.add(id);
        }
      }));
      showTaste();
    }
  } catch (error) {
    failed(error);
  } finally {
    learning = false;
  }
  leaveOut(strangers);
}

let leftOut = [];

function leaveOut(strangers) {
  const gone = [...state.taste, ...state.deny].filter((id) => strangers.has(id));
  if (gone.length === 0) return;
  leftOut = [...leftOut, ...gone];
  const names = leftOut.slice(0, 5).join(", ") + (leftOut.length > 5 ? " …" : "");
  const what = leftOut.length === 1 ? "An item of the link is" : `${leftOut.length} items of the link are`;
  notice("unknown", `${what} unknown to this model and left out: ${names}`);
  const keep = (ids) => ids.filter((id) => !strangers.has(id));
  state = { ...state, taste: keep(state.taste), deny: keep(state.deny) };
  remain();
  refresh();
}

// --- the taste -------------------------------------------------------------------------------------------------

function chip(item, label, remove) {
  return el("li", { class: "chip" }, el("span", {}, named(item)),
    el("button", { type: "button", "aria-label": label, onclick: remove }, icon("cross")));
}

function fillChips(list, chips) {
  const index = [...list.children].findIndex((node) => node.contains(document.activeElement));
  list.replaceChildren(...chips);
  if (index < 0) return;
  const next = list.children[Math.min(index, list.children.length - 1)];
  (next?.querySelector("button") ?? $("search")).focus(); // the chip that had the focus is gone
}

function showTaste() {
  const chips = state.taste.map((id) =>
    chip(itemOf(id), `Remove ${nameOf(itemOf(id))}`, () => removeFrom("taste", id)));
  if (state.user !== null) {
    const size = answered?.user === state.user ? ` · ${plural(answer.known, "item")}` : "";
    chips.push(chip({ item: `User ${state.user}${size}` }, `Remove user ${state.user}`, () => change({ user: null })));
  }
  fillChips($("chips"), chips);
  $("chosen").hidden = chips.length === 0;
  $("clear").hidden = chips.length < 2 && state.deny.length === 0;
  fillChips($("denied-chips"), state.deny.map((id) =>
    chip(itemOf(id), `Allow ${nameOf(itemOf(id))} again`, () => removeFrom("deny", id))));
  $("denied").hidden = state.deny.length === 0;
  $("user-error").textContent = "";
  $("user").removeAttribute("aria-invalid");
}

function showStart() {
  $("start-words").textContent = dialled
    ? "Pick something and recommendations appear. A dial then takes them from the popular to the rare, live."
    : "Pick something and recommendations appear, from what other people with the same taste chose.";
  $("starters").replaceChildren(...popular.slice(0, STARTERS).map((item) =>
    el("li", {},
      el("button", { type: "button", class: "starter", onclick: () => begin(item) },
        el("span", { class: "starter-name" }, named(item)),
        el("span", { class: "starter-note" }, plural(item.popularity, "user"))))));
}

// --- the list --------------------------------------------------------------------------------------------------

const rows = new Rows($("rows"), { like: add, deny, similar: null });

// The list that is shown now, to compare the next one with.
function compareWith(since, same) {
  return answer === null ? null : { ranks: new Map(rows.ids.map((id, i) => [id, i])), since, same };
}

function showAnswer(got, asked) {
  answer = got;
  answered = asked;
  remember(got.items);
  if (state.user !== null) showTaste(); // now with the size of the user's history
  rows.show(got.items, before?.ranks ?? null);
  const words = statusWords(got);
  $("status").textContent = words;
  $("captions").hidden = got.items.length === 0;
  if (dialled) showNow(asked);
  const at = dialled ? ` at ${listed(knobs.map((knob) => standing(knob, asked)))}` : "";
  const first = got.items.length > 0 ? ` First: ${nameOf(got.items[0])}.` : "";
  announce(`${plural(got.items.length, "recommendation")}${at}. ${words.replace(/\.?$/, ".")}${first}`, 700);
  leaveOut(new Set((got.unknown ?? []).map(String)));
}

function statusWords({ items, known: size, popular: unknown }) {
  if (unknown) return "Nothing of this taste is known to the model: these are the most popular items.";
  if (items.length === 0) return "There is nothing left to recommend.";
  if (before === null) return state.user === null ? `From ${plural(size, "item")} that you like` : "From their history";
  const fresh = items.filter((item) => !before.ranks.has(idOf(item))).length;
  const moved = items.filter((item, i) => before.ranks.has(idOf(item)) && before.ranks.get(idOf(item)) !== i).length;
  if (fresh + moved === 0) return `The same list as ${before.same}`;
  const parts = [moved > 0 ? `${moved} moved` : "", fresh > 0 ? `${fresh} new` : ""].filter(Boolean);
  return `${parts.join(", ")} since ${before.since}`;
}

// --- the dials -------------------------------------------------------------------------------------------------

const rarity = new Knob($("rarity"), {
  field: "item_norm",
  name: "rarity",
  label: "Rarity",
  along: "popular to rare",
  path: () => ({ item_norms: rarity.scale.spread(Math.min(POINTS, model.limits.xis)) }),
  read: ofRarity,
}, { turn, rest });
const xi = new Knob($("fine"), {
  field: "xi",
  name: "ξ",
  label: "Fine tuning, ξ",
  along: "the smallest ξ to the largest",
  path: () => ({}),
  read: ofXi,
}, { turn, rest });
const fresh = new Knob($("fresh"), {
  field: "freshness",
  name: "freshness",
  label: "Freshness",
  along: "timeless to fresh",
  path: null,
  read: () => ofFreshness(model.fresh_days),
}, { turn, rest });
const all = [rarity, fresh, xi];
let knobs = all; // those that the model has
let inHand = rarity; // the one turned last
let charting = rarity; // the one that the chart is along: the last in the hand that has a path

const chart = new Chart($("chart"), { move: (at) => turn(charting, Math.round(at * STEPS)), end: letGo });

function letGo() {
  rest();
  charting.input.focus({ preventScroll: true }); // the arrow keys go on from here
}

// A dial's range has the model's own value in it.
function setScales() {
  const { item_norm: own, freshness } = model;
  const ends = [Math.min(RARITIES[0], own), Math.max(RARITIES[1], own)];
  const limits = (knob) => [DIALS[knob.field].least, DIALS[knob.field].most];
  const most = Math.min(DIALS.freshness.most, Math.max(1, 2 * freshness));
  rarity.scale = new Scale(ends, own, limits(rarity), { signed: true });
  fresh.scale = new Scale([0, most], freshness, limits(fresh), { power: FINER });
  xi.scale = new Scale(model.xi_interval, model.xi, limits(xi));
  knobs = all.filter((knob) => model.dials.includes(knob.field));
  for (const knob of all) knob.host.hidden = !knobs.includes(knob);
  for (const knob of knobs) knob.describe(knob.read());
}

const valueOf = (knob, asked) => asked[knob.field] ?? knob.scale.own;
const standing = (knob, asked) => `${knob.name} ${knob.scale.written(valueOf(knob, asked))}`;

// Take a dial into the hand: the chart is along it from now on, if it has a path.
function take(knob) {
  inHand = knob;
  if (knob.path === null || knob === charting) return;
  charting = knob;
  chart.show([]);
}

function turn(knob, step) {
  const value = knob.scale.value(step);
  if (value === state[knob.field]) return;
  if (settled && answer !== null) {
    const last = standing(knob, answered);
    before = compareWith(last, `at ${last}`);
  }
  settled = false;
  state = { ...state, [knob.field]: value };
  take(knob);
  showDials();
  remain(250);
  ranking.ask(state);
  if (knob === charting) askPath();
}

// A path costs more than a list: while a dial that the chart is not along moves, the old one stays.
function rest() {
  settled = true;
  if (answer !== null) askPath();
}

function showDials() {
  $("dial").hidden = !dialled;
  if (!dialled) return;
  for (const knob of knobs) {
    knob.host.classList.toggle("in-hand", knob === inHand);
    knob.show(state[knob.field]);
    if (knob !== charting) knob.describe(knob.read());
  }
}

function showNow(asked) {
  const items = answer.items;
  if (items.length === 0) return;
  const popularity = items.reduce((sum, item) => sum + item.popularity, 0) / items.length;
  const tail = items.filter((item) => item.group === "tail").length / items.length;
  const { scale } = charting;
  chart.now = { at: scale.at(valueOf(charting, asked)), own: scale.at(scale.own), popularity, tail_share: tail };
  rarity.brief.textContent = `${about(popularity)} users${tail > 0 ? `, ${share(tail)} tail` : ""}`;
  const words = `: ${about(popularity)} users per item, ${share(tail)} in the long tail`;
  for (const knob of knobs) if (asked[knob.field] === state[knob.field]) knob.show(state[knob.field], words);
}

function showPath(path, knob) {
  if (path[0].items.length === 0) return; // nothing is left to recommend
  chart.show(path.map((point) => ({ ...point, at: knob.scale.at(point[knob.field]) })), knob.along);
  knob.describe(knob.read(path));
}

// --- similar items -----------------------------------------------------------------------------------------------

const similar = new Similar($("similar"), {
  find: (item) => service.similar(idOf(item), atMost(SIMILAR)),
  has: inTaste,
  add,
  remove: (item) => removeFrom("taste", idOf(item)),
  failed,
});

// --- the key -----------------------------------------------------------------------------------------------------

let refused = false;

function askForKey() {
  $("key-error").textContent = refused ? "The server does not take this key." : "";
  if (!$("key").open) $("key").showModal();
  $("key-value").select();
}

$("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const value = $("key-value").value.trim();
  if (value === "") return ($("key-error").textContent = "Enter the key first.");
  service.useKey(value);
  refused = true;
  $("key").close("given");
  retry();
});
$("key").addEventListener("close", () => {
  const given = $("key").returnValue === "given";
  $("key").returnValue = "";
  const again = { name: "Enter the key", run: retry };
  if (!given) notice("server", "Without its API key the service does not answer.", again);
});

// --- the beginning -----------------------------------------------------------------------------------------------

function showModel() {
  document.title = model.title ? `${model.title} · relae` : "relae";
  $("dataset").textContent = model.title || "Recommendations";
  $("search").placeholder = model.titles ? "Search by title" : "Search by item id";
  $("user-form").hidden = !model.users;
  const facts = modelFacts().flatMap((fact) => [el("span", {}, fact), " "]);
  $("footer").replaceChildren(el("p", {}, ...facts, el("a", { href: "openapi.json" }, "The API of this service")));
}

function modelFacts() {
  const { parameters = {}, data = {}, fitted = {}, versions = {} } = model;
  const { dropout, xi, user_norm, item_norm, propensity, half_life, fading, freshness, fresh_days } = parameters;
  const settings = { l2: fitted.l2 ?? parameters.l2, dropout, ξ: xi, β: user_norm, α: item_norm, γ: propensity };
  const given = Object.entries(settings).filter(([, value]) => typeof value === "number");
  const rounded = (value) => Number(value.toPrecision(4));
  const time = [
    half_life ? `half-life ${rounded(half_life)} days` : null,
    fading ? `fading ${rounded(fading)}` : null,
    freshness ? `freshness ${rounded(freshness)} over ${rounded(fresh_days)} days` : null,
  ].filter((words) => words !== null);
  const made = new Date(model.created ?? NaN);
  const day = { day: "numeric", month: "long", year: "numeric" };
  return [
    [model.model, ...given.map(([name, value]) => `${name} ${rounded(value)}`), ...time].join(", "),
    `${count(data.users)} users × ${count(data.items)} items`,
    Number.isNaN(made.getTime()) ? null : `made ${made.toLocaleDateString("en-GB", day)}`,
    typeof fitted.residual === "number" ? `residual ${fitted.residual.toExponential(0).replace("-", "−")}` : null,
    versions.relae ? `relae ${versions.relae}` : null,
  ].filter((fact) => fact !== null);
}

function showSizes() {
  const choose = (k) => ({ type: "radio", name: "k", value: k, onchange: () => change({ k }, { compare: false }) });
  const sizes = SIZES.filter((k) => atMost(k) === k);
  $("sizes").replaceChildren(
    $("sizes").firstElementChild, // the legend
    ...sizes.map((k) => el("label", {}, el("input", choose(k)), el("span", {}, String(k)))),
  );
}

async function start() {
  try {
    model = await service.model();
    answer = null;
    refused = false;
    dialled = model.dials.length > 0;
    if (dialled) setScales();
    rows.similar = dialled ? (item) => similar.open(item) : null;
    popular = (await service.items("", atMost(WELL_KNOWN))).items;
  } catch (error) {
    model = null;
    return failed(error);
  }
  clearNotice("server");
  remember(popular);
  rows.most = popular[0]?.popularity ?? 1;
  rows.show([], null);
  showModel();
  showSizes();
  showStart();
  restore();
}

combobox({
  input: $("search"),
  popup: $("popup"),
  list: $("found"),
  note: $("found-note"),
  find: (words, limit) => service.items(words, atMost(limit)),
  choose: add,
  chosen: inTaste,
  failed,
});
$("user-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const user = $("user").value.trim();
  if (user === "") return userFailed("Enter a user id first.");
  try {
    await service.recommend({ user, k: 1 });
  } catch (error) {
    return error.field === "user" ? userFailed(error.message) : failed(error);
  }
  $("user").value = "";
  change({ user, taste: [] });
});
$("clear").addEventListener("click", () => {
  change({ taste: [], user: null, deny: [] });
  $("search").focus();
});
$("surprise").addEventListener("click", surprise);
$("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the part after "#" is the state
  (hasTaste() ? $("results-heading") : $("search")).focus();
});
$("copy").addEventListener("click", async () => {
  const link = new URL(address(), location.href).href;
  const copied = await copy(link);
  if (!copied) return notice("copy", `The browser does not let this page copy. The link: ${link}`);
  $("copy").textContent = "Copied";
  announce("The link was copied.");
  setTimeout(() => ($("copy").textContent = "Copy link"), 1600);
});

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // not a secure context, as on a plain-http intranet: the old way
    const field = el("textarea", { class: "hidden-text", "aria-hidden": "true" });
    field.value = text;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    $("copy").focus();
    return done;
  }
}

// A tab that was left open may find another model behind the service.
document.addEventListener("visibilitychange", async () => {
  if (document.hidden || model === null) return;
  try {
    const { created } = await service.model();
    if (created === model.created) return;
    known.clear();
    charted = null;
    start();
  } catch (error) {
    failed(error);
  }
});
addEventListener("popstate", () => {
  if (model !== null) restore();
});
// On a phone the dial stays at the lower edge of the screen, and what lies below it in its card is out of sight.
new ResizeObserver(() => {
  const below = $("dial").getBoundingClientRect().bottom - $("rarity").getBoundingClientRect().bottom;
  $("dial").style.setProperty("--below", `${Math.floor(below)}px`);
}).observe($("dial"));

start();
