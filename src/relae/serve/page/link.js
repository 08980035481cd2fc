// The state as the part of the address after "#", which is never sent to a server.

export const SIZES = [10, 20, 50];

export const EMPTY = Object.freeze({ taste: [], user: null, xi: null, k: SIZES[0], deny: [] });

export function write(state) {
  const parts = new URLSearchParams();
  if (state.user !== null) parts.append("user", state.user);
  for (const id of state.taste) parts.append("taste", id);
  if (state.xi !== null) parts.append("xi", state.xi);
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
  if (parts.has("xi")) {
    const given = parts.get("xi");
    const xi = given === "" ? NaN : Number(given);
    if (xi >= 0 && xi <= 1) state.xi = xi;
    else problems.push(`The link asks for ξ = ${given}, and ξ lies between 0 and 1. The model’s own ξ is used.`);
  }
  if (parts.has("k")) {
    const given = parts.get("k");
    if (SIZES.includes(Number(given))) state.k = Number(given);
    else problems.push(`The link asks for ${given} items. This page shows ${SIZES.join(", ")}: here are ${state.k}.`);
  }
  return { state, problems };
}
