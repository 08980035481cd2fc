// The page: one state, what is asked of the service for it, and what is shown.

import * as service from "./api.js";
import { Chart } from "./chart.js";
import { describe, Scale, STEPS } from "./dial.js";
import { $, about, count, el, icon, named, nameOf, plural, share } from "./dom.js";
import { EMPTY, read, SIZES, write } from "./link.js";
import { Rows } from "./list.js";
import { combobox } from "./search.js";
import { Similar } from "./similar.js";

const STARTERS = 12; // popular items to begin with
const WELL_KNOWN = 48; // of which a surprise is drawn
const SURPRISE = 3;
const SIMILAR = 10;
const AT_ONCE = 6; // titles asked for at a time

let state = { ...EMPTY };
let model = null;
let scale = null; // of the dial; null for a model without ξ
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
const xiNow = () => state.xi ?? scale.own;

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
  if (scale === null && wanted.xi !== null) {
    problems.push(`The link asks for ξ = ${wanted.xi}, and this model has no ξ.`);
    wanted.xi = null;
  }
  if (write(wanted) === write(state) && problems.length === 0 && answer !== null) return;
  state = wanted;
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
const sameList = (a, b) => write({ ...a, xi: null }) === write({ ...b, xi: null });

const wish = (asked) => ({ ...who(asked), k: atMost(asked.k), deny: asked.deny });

const ranking = new service.Latest(
  (asked) => service.recommend({ ...wish(asked), ...(scale === null ? {} : { xi: asked.xi, explain: true }) }),
  (answer, asked) => {
    clearNotice("server");
    // One for an older place of the dial is a frame of its motion; one for another list is out of date.
    if (sameList(asked, state)) showAnswer(answer, asked);
  },
  listFailed,
);

const paths = new service.Latest(
  (asked) => service.path(wish(asked)),
  (answer, asked) => {
    if (sameList(asked, state)) showPath(answer.path);
  },
  listFailed,
);

let drawn = null; // the state that the path on the chart is of

function refresh() {
  showTaste();
  showDial();
  $("board").hidden = !hasTaste();
  $("start").hidden = hasTaste();
  for (const radio of $("sizes").querySelectorAll("input")) radio.checked = Number(radio.value) === state.k;
  learnTitles();
  if (!hasTaste()) {
    answer = null;
    drawn = null;
    rows.show([], null);
    return;
  }
  ranking.ask(state);
  if (scale !== null && (drawn === null || !sameList(drawn, state))) paths.ask(state);
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
  $("start-words").textContent = scale === null
    ? "Pick something and recommendations appear, from what other people with the same taste chose."
    : "Pick something and recommendations appear. A dial then takes them from the popular to the long tail, live.";
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
  if (scale !== null) showNow(asked);
  const at = scale === null ? "" : ` at ξ ${scale.written(asked.xi ?? scale.own)}`;
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

// --- the dial --------------------------------------------------------------------------------------------------

const chart = new Chart($("chart"), { move: (at) => turn(Math.round(at * STEPS)), end: letGo });

function letGo() {
  settle();
  $("xi").focus({ preventScroll: true }); // the arrow keys go on from here
}

function turn(step) {
  const xi = scale.xi(step);
  if (xi === state.xi) return;
  if (settled && answer !== null) {
    const last = `ξ ${scale.written(answered.xi ?? scale.own)}`;
    before = compareWith(last, `at ${last}`);
  }
  settled = false;
  state = { ...state, xi };
  showDial();
  remain(250);
  ranking.ask(state);
}

function settle() {
  settled = true;
}

function showDial() {
  $("dial").hidden = scale === null;
  if (scale === null) return;
  const xi = xiNow();
  $("xi").value = scale.step(xi);
  $("xi-value").textContent = scale.written(xi);
  $("xi").setAttribute("aria-valuetext", `ξ ${scale.written(xi)}`);
  $("own").textContent = state.xi === null ? "the model’s own" : `Back to the model’s ${scale.written(scale.own)}`;
  $("own").disabled = state.xi === null;
  $("own-mark").style.setProperty("--at", scale.at(scale.own));
}

function showNow(asked) {
  const items = answer.items;
  if (items.length === 0) return;
  const popularity = items.reduce((sum, item) => sum + item.popularity, 0) / items.length;
  const tail = items.filter((item) => item.group === "tail").length / items.length;
  const xi = asked.xi ?? scale.own;
  chart.now = { at: scale.at(xi), own: scale.at(scale.own), popularity, tail_share: tail };
  $("brief").textContent = `${about(popularity)} users${tail > 0 ? `, ${share(tail)} tail` : ""}`;
  if (asked.xi !== state.xi) return;
  const words = `ξ ${scale.written(xi)}: ${about(popularity)} users per item, ${share(tail)} in the long tail`;
  $("xi").setAttribute("aria-valuetext", words);
}

function showPath(path) {
  drawn = state;
  if (path[0].items.length === 0) return; // nothing is left to recommend
  chart.path = path;
  const { low, high, tail, words } = describe(path);
  $("dial").dataset.tail = tail;
  $("end-low").textContent = low;
  $("end-high").textContent = high;
  $("dial-words").textContent = words;
  $("xi").setAttribute("aria-label", `ξ, from ${low} to ${high}`);
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
  const settings = { l2: fitted.l2 ?? parameters.l2, dropout: parameters.dropout, ξ: parameters.xi };
  const given = Object.entries(settings).filter(([, value]) => typeof value === "number");
  const made = new Date(model.created ?? NaN);
  const day = { day: "numeric", month: "long", year: "numeric" };
  return [
    [model.model, ...given.map(([name, value]) => `${name} ${Number(value.toPrecision(4))}`)].join(", "),
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
    scale = model.xi_interval ? new Scale(model.xi_interval, model.xi) : null;
    rows.similar = scale === null ? null : (item) => similar.open(item);
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
$("xi").addEventListener("input", () => turn(Number($("xi").value)));
$("xi").addEventListener("change", settle);
$("own").addEventListener("click", () => {
  turn(scale.step(scale.own));
  settle();
  $("xi").focus();
});
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
    drawn = null;
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
  const below = $("dial").getBoundingClientRect().bottom - $("dial-control").getBoundingClientRect().bottom;
  $("dial").style.setProperty("--below", `${Math.floor(below)}px`);
}).observe($("dial"));

start();
