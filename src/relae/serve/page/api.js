// The service: requests, the key, and errors in words.

const STORED = "relae-key";
const PATIENCE = 30_000; // ms

let key = remembered();

function remembered() {
  try {
    return sessionStorage.getItem(STORED);
  } catch {
    return null; // storage is switched off: the key lives as long as the page
  }
}

export function useKey(value) {
  key = value;
  try {
    sessionStorage.setItem(STORED, value);
  } catch {
    // as above
  }
}

export class ServiceError extends Error {
  constructor(message, status = 0, field = null) {
    super(message);
    this.status = status;
    this.field = field;
  }

  // Whether the same request may well succeed later.
  get passing() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

// Whole numbers beyond 2^53 would be rounded to another item's id: they stay text, which the service takes as well.
function exact(name, value, context) {
  const unsafe = typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);
  return unsafe && /^-?\d+$/.test(context?.source ?? "") ? context.source : value;
}

// A header carries bytes: those of UTF-8, as the service compares them.
const bytes = (text) => String.fromCharCode(...new TextEncoder().encode(text));

async function call(path, options = {}) {
  const headers = { Accept: "application/json", ...options.headers };
  if (key) headers.Authorization = `Bearer ${bytes(key)}`;
  let response, text;
  try {
    response = await fetch(path, { ...options, headers, signal: AbortSignal.timeout(PATIENCE) });
    text = await response.text();
  } catch (error) {
    const late = error.name === "TimeoutError";
    throw new ServiceError(
      late ? "The server took longer than 30 seconds to answer." : "The server does not answer. Is it still running?",
    );
  }
  let body = null;
  try {
    body = JSON.parse(text, exact);
  } catch {
    // not from the service itself, for example a proxy's page
  }
  if (response.ok && body !== null) return body;
  const message = body?.error?.message ?? `The server answered with status ${response.status} and no reason.`;
  throw new ServiceError(message, response.status, body?.error?.field ?? null);
}

const post = (path, body) =>
  call(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

// An id is a path: what lies between its slashes is encoded, the slashes are not.
const inPath = (id) => String(id).split("/").map(encodeURIComponent).join("/");

export const model = () => call("v1/model");
export const items = (words, limit) => call(`v1/items?${new URLSearchParams({ q: words, limit })}`);
export const item = (id) => call(`v1/items/${inPath(id)}`);
export const similar = (id, k) => call(`v1/similar/${inPath(id)}?k=${k}`);
export const recommend = (request) => post("v1/recommend", request);
export const path = (request) => post("v1/path", request);

// At most one request at a time. What is asked for meanwhile waits, and only the newest of it is sent.
export class Latest {
  #waiting = null;
  #busy = false;

  constructor(send, receive, fail) {
    Object.assign(this, { send, receive, fail });
  }

  async ask(request) {
    this.#waiting = request;
    if (this.#busy) return;
    this.#busy = true;
    while (this.#waiting !== null) {
      const asked = this.#waiting;
      this.#waiting = null;
      try {
        this.receive(await this.send(asked), asked);
      } catch (error) {
        this.fail(error, asked);
      }
    }
    this.#busy = false;
  }
}
