// As python/program.py, for systems that are used from Node.js.

import { once } from 'node:events';

const AHEAD_MS = 2000;
const BATCH = 100;
const HOUR_MS = 3_600_000;
const PAYLOAD_BYTES = 64;
const WARM_UP_MS = 500;

const nowMs = () => performance.timeOrigin + performance.now();
const sleep = (ms) => new Promise((wake) => setTimeout(wake, ms));
const tell = (facts) => process.stdout.write(JSON.stringify(facts) + '\n');
const payload = (dueMs, number, size = PAYLOAD_BYTES) => `${dueMs} ${number} `.padEnd(size, 'x');

function far(number, size) {
  const dueMs = Math.floor(nowMs()) + HOUR_MS + (number % HOUR_MS);
  return { number, payload: payload(dueMs, number, size), dueMs };
}

const due = (number) => ({ number, payload: payload(0, number), dueMs: null });

async function addAll(system, count, job, from = 0) {
  for (let first = from; first < from + count; first += BATCH) {
    const size = Math.min(BATCH, from + count - first);
    await system.addMany(Array.from({ length: size }, (_, more) => job(first + more)));
  }
}

async function add(system, how, seconds) {
  let number = 0;
  const addSome = async () => {
    if (how === 'single') await system.add(far(number++));
    else await system.addMany(Array.from({ length: BATCH }, () => far(number++)));
  };
  const addFor = async (ms) => {
    const began = nowMs();
    while (nowMs() < began + ms) await addSome();
    return (nowMs() - began) / 1000;
  };
  await addFor(WARM_UP_MS);
  const before = number;
  const took = await addFor(seconds * 1000);
  tell({ jobs: number - before, seconds: took, jobs_in_all: number });
}

async function fill(system, count, size) {
  await addAll(system, Number(count), (number) => far(number, Number(size)));
  tell({ jobs: Number(count) });
}

async function warmUp(system, count) {
  await addAll(system, count, due);
  if (count === 0) return;
  await once(process.stdin, 'data');
  process.stdin.destroy(); // it would keep the process
}

async function ready(system, count, warm) {
  await warmUp(system, Number(warm));
  const began = nowMs() / 1000;
  await addAll(system, Number(count), due, Number(warm));
  tell({ began });
}

async function paced(system, count, seconds, warm) {
  await warmUp(system, Number(warm));
  const first = Math.floor(nowMs()) + 100;
  const stepMs = (1000 * seconds) / count;
  for (let number = 0; number < count; number++) {
    const at = first + Math.floor(number * stepMs);
    if (at > nowMs()) await sleep(at - nowMs());
    const dueMs = at + AHEAD_MS;
    const id = Number(warm) + number;
    await system.add({ number: id, payload: payload(dueMs, id), dueMs });
  }
  tell({ jobs: Number(count) });
}

/** Handles jobs: answers whether that was the last one. */
function handler(wanted, warm) {
  const numbers = new Set();
  const lateUs = [];
  let twice = 0;
  return (text) => {
    const now = nowMs();
    const [dueMs, number] = text.split(' ', 2);
    if (numbers.has(number)) {
      twice++;
      return false;
    }
    numbers.add(number);
    if (Number(dueMs)) lateUs.push(Math.round((now - Number(dueMs)) * 1000));
    if (numbers.size === warm) tell({ warm: true });
    const isLast = numbers.size === wanted;
    if (isLast) tell({ ended: nowMs() / 1000, twice, late_us: lateUs });
    return isLast;
  };
}

async function work(system, count, warm) {
  await system.work(handler(Number(count), Number(warm)), () => tell({ ready: true }));
  setInterval(() => {}, 1 << 30); // whoever measures looks at it yet
}

const FIRST = 'tenant-0';

/** One tenant with a backlog, and behind it others with a job each. */
async function tenants_fill(system, tenants, backlog) {
  await addAll({ addMany: (jobs) => system.addFor(FIRST, jobs) }, Number(backlog), due);
  for (let number = 1; number <= Number(tenants); number++) {
    await system.addFor(`tenant-${number}`, [due(Number(backlog) + number)]);
  }
  tell({ jobs: Number(tenants) + Number(backlog) });
}

/** When the last of the others' jobs is taken, and all. */
async function tenants_work(system, tenants, backlog) {
  const names = Array.from({ length: Number(tenants) + 1 }, (_, number) => `tenant-${number}`);
  let [others, first, began] = [0, 0, 0];
  const facts = {};
  const handle = (tenant) => {
    if (tenant === FIRST) first++;
    else if (++others === Number(tenants)) Object.assign(facts, { others_ms: nowMs() - began, before: first });
    const isLast = first + others === Number(tenants) + Number(backlog);
    if (isLast) tell({ ...facts, seconds: (nowMs() - began) / 1000 });
    return isLast;
  };
  const begin = () => {
    tell({ ready: true });
    began = nowMs();
  };
  await system.workFor(names, handle, begin);
  setInterval(() => {}, 1 << 30); // whoever measures looks at it yet
}

const CALLBACK = 'callback';

async function batch_fill(system, count) {
  const payloads = Array.from({ length: Number(count) }, (_, number) => payload(0, number));
  const began = nowMs();
  await system.addBatch(payloads, CALLBACK);
  tell({ seconds: (nowMs() - began) / 1000 });
}

/** The end is that of the callback. All children must have run before it, each once. */
async function batch_work(system, count) {
  const numbers = [];
  let began;
  const handle = (text) => {
    if (text !== CALLBACK) return void numbers.push(text.split(' ', 2)[1]);
    const different = new Set(numbers).size;
    tell({ seconds: (nowMs() - began) / 1000, missing: count - different, twice: numbers.length - different });
  };
  const isReady = () => {
    tell({ ready: true });
    began = nowMs();
  };
  await system.workBatch(handle, isReady);
  setInterval(() => {}, 1 << 30); // whoever measures looks at it yet
}

const [name, task, ...words] = process.argv.slice(2);
const { default: System } = await import(`./systems/${name}.js`);
const system = new System(Number(process.env.BENCH_PORT));
await { add, fill, ready, paced, work, tenants_fill, tenants_work, batch_fill, batch_work }[task](system, ...words);
if (!task.endsWith('work')) await system.close?.();
