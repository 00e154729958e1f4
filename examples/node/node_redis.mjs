// A producer and a worker with node-redis.
//
//     node node_redis.mjs add welcome:7 "Dear Ann" 5000    # a job, due in five seconds
//     node node_redis.mjs work                             # until Ctrl-C or SIGTERM

import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, RESP_TYPES } from 'redis';

const URL = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379';
const QUEUE = 'mails';
const LEASE_MS = Number(process.env.LEASE_MS ?? 30_000); // a worker that is silent for so long loses its job
const WAIT_S = 1; // how long one BPOP waits

/**
 * node-redis waits for ever for a server that is silent or gone. This is the longest that a stop takes.
 *
 * @param {Promise<unknown>} answer
 * @returns {Promise<any>}
 */
const inTime = (answer) =>
  Promise.race([
    answer,
    sleep((WAIT_S + 2) * 1000, undefined, { ref: false }).then(() => {
      throw new Error('the server does not answer');
    }),
  ]);

// Without this handler a lost connection ends the process. The worker makes new ones by itself.
const create = () =>
  createClient({ url: URL, socket: { reconnectStrategy: false } })
    .on('error', (error) => console.log(`trouble: ${error}`));

/**
 * With an id of its own a job that is sent twice is there once.
 *
 * @param {string} id
 * @param {string} text
 * @param {string} delayMs
 */
async function add(id, text, delayMs) {
  const db = await create().connect();
  const options = ['DELAY', delayMs, 'ATTEMPTS', '5', 'BACKOFF', '2', '1000', '60000'];
  const added = await db.sendCommand(['DQ.ADD', QUEUE, id, text, ...options]);
  console.log(added ? 'added' : 'there is already a job', id);
  await db.close();
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

/** @typedef {ReturnType<typeof create>} Client */

/**
 * @param {Client} db
 * @param {Delivered} job
 */
async function handle(db, [, id, payload, token, attempt]) {
  // The heartbeat begins the lease anew, as long as the work goes on and the job is ours.
  const heart = setInterval(async () => {
    try {
      const deadline = await inTime(db.sendCommand(['DQ.TOUCH', QUEUE, id, 'TOKEN', token]));
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
    const state = await inTime(db.sendCommand(['DQ.NACK', QUEUE, id, 'TOKEN', token]));
    console.log(`failed ${id} (attempt ${attempt}): ${failure.message}; now ${state ?? 'lost'}`);
  } else if ((await inTime(db.sendCommand(['DQ.ACK', QUEUE, 'WITHTOKENS', 'IDS', '1', id, token])))[0] === 1) {
    console.log(`done ${id} (attempt ${attempt})`);
  } else {
    console.log(`lost ${id}: another worker may have it`);
  }
}

/**
 * One after the other, until it is told to stop or a connection fails.
 *
 * @param {Client} db
 * @param {Client} waiting
 * @param {() => boolean} isStopping
 */
async function serve(db, waiting, isStopping) {
  await inTime(Promise.all([db.connect(), waiting.connect()]));
  // Replies as buffers: ids and payloads are bytes.
  const bytes = waiting.withCommandOptions({ typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } });
  while (!isStopping()) {
    const job = await inTime(bytes.sendCommand(['DQ.BPOP', QUEUE, String(WAIT_S), 'TTR', String(LEASE_MS)]));
    if (job) await handle(db, job);
  }
}

async function work() {
  let stopping = false;
  for (const name of ['SIGTERM', 'SIGINT']) process.on(name, () => (stopping = true));
  while (!stopping) {
    // A second connection waits, as BPOP holds up all other commands of its own.
    const clients = /** @type {const} */ ([create(), create()]);
    try {
      await serve(...clients, () => stopping);
    } catch (error) {
      // Whatever we had is delivered again when its lease ends.
      console.log(`trouble: ${error}`);
      await sleep(500);
    } finally {
      for (const client of clients) if (client.isOpen) client.destroy();
    }
  }
  console.log('stopped');
}

const [command, id, text, delayMs] = process.argv.slice(2);
if (command === 'add' && delayMs !== undefined) await add(id, text, delayMs);
else if (command === 'work') await work();
else throw new Error('usage: node_redis.mjs add ID TEXT DELAY_MS | work');
