// The stream of the reader: all queues, and then their changes. And the questions that views ask besides.

export const rows = new Map();
export const state = { head: null, may: false, actions: false, isReplica: false, user: null, session: false, server: null, tab: 0, hellos: 0, link: "new", behind: 0, held: false };
const listeners = new Set();

export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell() {
  for (const listener of listeners) listener();
}

// Whether the node of this row does not answer: its figures are old.
export function isDown(row) {
  return Boolean(state.head?.nodes.find((node) => node.name === row.node)?.down);
}

// Whether the servers have said anything yet.
export const isRead = () => Boolean(state.head?.nodes.some((node) => node.version)) || [...rows.values()].some((row) => row.jobs);

// A server that can be reached may refuse all the same.
export const downTold = (why) => (why.startsWith("the server refuses") ? why : "cannot be reached");

// Why nothing follows from what is not there, if so: a replica that has not reached its master may lack anything.
export const unknown = () => (state.head?.nodes.some((node) => node.unsynced) ? "Not known: this replica has not reached its master." : "");

// Why nothing is known of deliveries, if so.
export const unseen = () => unknown() || (state.head?.nodes.some((node) => node.role === "slave") ? "What its master delivers is not seen on a replica." : "");

// Whether a queue is known not to exist, once all servers have been searched.
export function isGone(key) {
  const row = rows.get(key);
  return row ? Boolean(row.gone) : Boolean(state.head?.whole) && !unknown();
}

// Whether actions on this queue can be offered: a node that does not answer carries out none.
export function mayAct(key) {
  const row = rows.get(key);
  return state.actions && !(row && isDown(row));
}

// The time by the servers' clock.
export function now() {
  return Date.now() + state.behind;
}

function take(message) {
  if (message.kind === "hello") {
    state.tab = message.tab;
    state.may = message.actions;
    state.user = message.user;
    state.session = message.session;
    state.server = message.server;
    seen = "";
    // A board that was started anew has read nothing yet.
    state.hellos++;
    if (state.head) state.head.whole = false;
    return;
  }
  if (message.kind === "all") rows.clear();
  for (const row of message.rows) rows.set(row.key, row);
  for (const key of message.gone) rows.delete(key);
  state.head = message.head;
  // A replica would refuse every action.
  state.isReplica = state.head.nodes.length > 0 && state.head.nodes.every((node) => node.role === "slave");
  state.actions = state.may && !state.isReplica;
  state.behind = message.now - Date.now();
}

let source = null;

function connect() {
  if (source || document.hidden || state.held) return;
  source = new EventSource("api/live");
  source.onmessage = (event) => {
    state.link = "open";
    take(JSON.parse(event.data));
    tell();
  };
  source.onerror = () => {
    // Closed for good: the session may have ended.
    if (source.readyState === EventSource.CLOSED) {
      source = null;
      again();
    }
    if (state.link !== "lost") {
      state.link = "lost";
      tell();
    }
  };
}

// A browser opens six connections to a board for all tabs together: a hidden tab gives its own back.
const UNSEEN_MS = 2000;

export function start() {
  let leaving;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(leaving);
    if (!document.hidden) return connect();
    leaving = setTimeout(disconnect, UNSEEN_MS);
  });
  connect();
}

function disconnect() {
  source?.close();
  source = null;
}

// While held, the screen stays as it is, and only what is opened is asked for.
export function hold(held) {
  state.held = held;
  if (held) disconnect();
  else connect();
  tell();
}

async function again() {
  try {
    const answer = await fetch("./", { cache: "no-store" });
    if (answer.status === 401) return location.reload();
  } catch { /* not there yet */ }
  setTimeout(connect, 1000);
}

const headers = { "x-dq": "1", "content-type": "application/json" };
let seen = "";

// Tells the board which queues are on the screen.
export function see(queues) {
  const body = JSON.stringify({ tab: state.tab, queues });
  if (!state.tab || body === seen) return;
  seen = body;
  fetch("api/see", { method: "POST", headers, body }).catch(() => (seen = ""));
}

export async function signOut() {
  await fetch("api/sign-out", { method: "POST", headers }).catch(() => {});
  location.assign("./");
}

// `about` is the query part of the URL; names and ids in it are encoded already.
export async function look(view, about, signal) {
  let answer;
  try {
    answer = await fetch(`api/look/${view}?${about}`, { signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The board does not answer.", { cause: error });
  }
  return told(answer);
}

export async function post(address, what) {
  let answer;
  try {
    answer = await fetch(address, { method: "POST", headers, body: JSON.stringify(what) });
  } catch (error) {
    throw new Error("The board does not answer. This may or may not have been done.", { cause: error });
  }
  return told(answer);
}

export async function get(address) {
  return told(await fetch(address));
}

export const act = async (what) => (await post("api/act", what)).done;

// What an action would send, as lines for redis-cli; and the script that makes them, if it is one.
export const commands = (what) => post("api/commands", what);

async function told(answer) {
  if (answer.status === 401) location.reload();
  const text = await answer.text();
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(text.trim() || `The board answers ${answer.status}.`);
  }
  if (!answer.ok) throw new Error(value.error);
  return value;
}

// Answers with more bytes of payload are asked for only twice a minute: each time the server sends all of it.
const HEAVY = 262_144;

const TASK_MS = 250;

// Begins a task and follows it to its end; `show` is called with what is told of it and its number, and ends it by false.
export async function task(what, show) {
  const number = (await post("api/tasks", what)).task;
  for (;;) {
    const told = await get(`api/tasks/${number}`);
    const isWanted = show(told, number) !== false;
    if (told.state !== "running") return told;
    if (!isWanted) {
      // An action goes on, but nobody waits for a count any more.
      if (what.act === "count") post(`api/tasks/${number}/stop`, {}).catch(() => {});
      return told;
    }
    await new Promise((resolve) => setTimeout(resolve, TASK_MS));
  }
}

// Asks now and then each second, and shows what is new. Ends with `stop`.
export function follow(ask, show, { every = 1000, weight = () => 0 } = {}) {
  const abort = new AbortController();
  let last = "";
  let pause = every;
  let timer;
  let turn = 0;
  const round = async (wanted) => {
    // What is asked `now` counts, not the answer that is still on its way.
    const own = (turn += 1);
    const isOver = () => abort.signal.aborted || own !== turn;
    if (wanted || !last || !(document.hidden || state.held)) {
      try {
        const value = await ask(abort.signal);
        if (isOver()) return;
        const text = JSON.stringify(value);
        if (text !== last) show(value, null);
        last = text;
        pause = weight(value) > HEAVY ? 30_000 : every;
      } catch (error) {
        if (isOver()) return;
        last = "";
        show(null, error.message);
      }
    }
    if (!isOver()) timer = setTimeout(round, pause);
  };
  round();
  return {
    stop() {
      abort.abort();
      clearTimeout(timer);
    },
    now() {
      clearTimeout(timer);
      round(true);
    },
  };
}
