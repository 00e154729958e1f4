// A producer and a worker with ioredis.
//
//     node ioredis.mjs add welcome:7 "Dear Ann" 5000    # a job, due in five seconds
//     node ioredis.mjs work                             # until Ctrl-C or SIGTERM

import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';

const URL = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379';
const QUEUE = 'mails';
const LEASE_MS = Number(process.env.LEASE_MS ?? 30_000); // a worker that is silent for so long loses its job
const WAIT_S = 1; // how long one BPOP waits

// ioredis waits for ever for a server that is silent, and for a minute for one that is gone. With these settings a
// command fails instead, at the latest after socketTimeout, which must be longer than BPOP's: the longest that a
// stop takes.
const options = {
  socketTimeout: (WAIT_S + 2) * 1000,
  connectTimeout: 2000,
  disconnectTimeout: 200,
  maxRetriesPerRequest: 0,
};
const connect = () => new Redis(URL, options).on('error', (error) => console.log(`trouble: ${error}`));

/**
 * With an id of its own a job that is sent twice is there once.
 *
 * @param {string} id
 * @param {string} text
 * @param {string} delayMs
 */
async function add(id, text, delayMs) {
  const db = connect();
  const added = await db.call(
    'DQ.ADD', QUEUE, id, text, 'DELAY', delayMs, 'ATTEMPTS', 5, 'BACKOFF', 2, 1000, 60_000);
  console.log(added ? 'added' : 'there is already a job', id);
  await db.quit();
}

/**
 * The work itself. Here it only fails once, or takes longer than a lease, where the text says so.
 *
 * @param {string} text
 * @param {number} attempt
 */
async function send(text, attempt) {
  if (text.startsWith('flaky') && attempt === 1) throw new Error('mail server is away');
  await sleep(text.startsWith('slow') ? LEASE_MS * 1.5 : 100);
}

/** @typedef {[queue: Buffer, id: Buffer, payload: Buffer, token: Buffer, attempt: number, deadline: number]} Delivered */

/**
 * @param {Redis} db
 * @param {Delivered} job
 */
async function handle(db, [, id, payload, token, attempt]) {
  // The heartbeat begins the lease anew, as long as the work goes on and the job is ours.
  const heart = setInterval(async () => {
    try {
      const deadline = await db.call('DQ.TOUCH', QUEUE, id, 'TOKEN', token);
      if (deadline === null) clearInterval(heart);
    } catch (error) {
      console.log(`no heartbeat: ${error}`);
    }
  }, LEASE_MS / 3);
  /** @type {any} */
  let failure;
  try {
    await send(payload.toString(), attempt);
  } catch (error) {
    failure = error;
  } finally {
    clearInterval(heart);
  }
  if (failure) {
    const state = await db.call('DQ.NACK', QUEUE, id, 'TOKEN', token);
    console.log(`failed ${id} (attempt ${attempt}): ${failure.message}; now ${state ?? 'lost'}`);
    return;
  }
  const [acknowledged] = /** @type {number[]} */ (
    await db.call('DQ.ACK', QUEUE, 'WITHTOKENS', 'IDS', 1, id, token));
  if (acknowledged === 1) {
    console.log(`done ${id} (attempt ${attempt})`);
  } else {
    console.log(`lost ${id}: another worker may have it`);
  }
}

async function work() {
  // A second connection waits, as BPOP holds up all other commands of its own.
  const db = connect();
  const waiting = db.duplicate().on('error', () => {});
  let stopping = false;
  for (const name of ['SIGTERM', 'SIGINT']) process.on(name, () => (stopping = true));
  while (!stopping) {
    try {
      // callBuffer: ids and payloads are bytes.
      const job = await waiting.callBuffer('DQ.BPOP', QUEUE, WAIT_S, 'TTR', LEASE_MS);
      if (job) await handle(db, /** @type {Delivered} */ (job));
    } catch (error) {
      // Whatever we had is delivered again when its lease ends.
      console.log(`trouble: ${error}`);
      await sleep(500);
    }
  }
  db.disconnect();
  waiting.disconnect();
  console.log('stopped');
}

const [command, id, text, delayMs] = process.argv.slice(2);
if (command === 'add' && delayMs !== undefined) await add(id, text, delayMs);
else if (command === 'work') await work();
else throw new Error('usage: ioredis.mjs add ID TEXT DELAY_MS | work');
