// The state as the part of the address after "#", which is never sent to a server.

export const SIZES = [10, 20, 50];

// What may be turned: by the names of the service, which takes no values beyond these.
export const DIALS = Object.freeze({
  item_norm: { called: "rarity", least: -1, most: 2 },
  freshness: { called: "freshness", least: 0, most: 10 },
  xi: { called: "ξ", least: 0, most: 1 },
});

// No dial is turned: null stands for the model's own value.
export const UNTURNED = Object.freeze(Object.fromEntries(Object.keys(DIALS).map((name) => [name, null])));

export const EMPTY = Object.freeze({ taste: [], user: null, ...UNTURNED, k: SIZES[0], deny: [] });

export function write(state) {
  const parts = new URLSearchParams();
  if (state.user !== null) parts.append("user", state.user);
  for (const id of state.taste) parts.append("taste", id);
  for (const name of Object.keys(DIALS)) if (state[name] !== null) parts.append(name, state[name]);
  if (state.k !== EMPTY.k) parts.append("k", state.k);
  for (const id of state.deny) parts.append("deny", id);
  return parts.toString();
}

// Returns the state, and in words what of the link could not be used.
export function read(hash) {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  const ids = (name) => [...new Set(parts.getAll(name).filter((id) => id !== ""))];
  const state = { ...EMPTY, taste: ids("taste"), user: parts.get("user") || null, deny: ids("deny") };
  const problems = [];
  if (state.user !== null && state.taste.length > 0) {
    problems.push("The link has both a user and a taste. The taste is shown.");
    state.user = null;
  }
  for (const [name, { called, least, most }] of Object.entries(DIALS)) {
    if (!parts.has(name)) continue;
    const given = parts.get(name);
    const value = given === "" ? NaN : Number(given);
    if (value >= least && value <= most) state[name] = value;
    else problems.push(
      `The link asks for ${called} ${given}, and it lies between ${least} and ${most}. The model’s own is used.`);
  }
  if (parts.has("k")) {
    const given = parts.get("k");
    if (SIZES.includes(Number(given))) state.k = Number(given);
    else problems.push(`The link asks for ${given} items. This page shows ${SIZES.join(", ")}: here are ${state.k}.`);
  }
  return { state, problems };
}
