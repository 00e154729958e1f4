// What ioredis makes of dq.

import assert from 'node:assert/strict';
import calculateSlot from 'cluster-key-slot';
import { Cluster, Command, Redis } from 'ioredis';
import { common, port, run, settled } from './checks.mjs';

const clients = new Map();

function client(check, options = {}) {
  const name = check + JSON.stringify(options);
  if (!clients.has(name)) clients.set(name, new Redis(port(check), '127.0.0.1', options).on('error', () => {}));
  return clients.get(name);
}

const ask = (check, ...command) => client(check).call(...command);
const askBytes = (check, ...command) => client(check).callBuffer(...command);

async function empty(db, queue) {
  assert.equal(await db.call('DQ.POP', queue), null);
  assert.deepEqual(await db.call('DQ.POP', queue, 'COUNT', 5), []);
}

async function resp2() {
  const db = client('resp2', { protocol: 2 });
  assert.equal(await db.call('DQ.ADD', 'resp2', 'a', 'x', 'DELAY', 60_000), 'a');
  const job = await db.call('DQ.GET', 'resp2', 'a');
  assert.equal(job[job.indexOf('state') + 1], 'delayed');
  await empty(db, 'resp2');
}

async function resp3() {
  const db = client('resp3'); // the default, which shows maps as RESP2 does
  assert.equal(await db.call('DQ.ADD', 'resp3', 'a', 'x', 'DELAY', 60_000), 'a');
  const flat = await db.call('DQ.GET', 'resp3', 'a');
  assert.equal(flat[flat.indexOf('state') + 1], 'delayed');
  const job = await client('resp3', { replyMapping: 'resp3' }).call('DQ.GET', 'resp3', 'a');
  assert.deepEqual([job.state, job.token, job.backoff], ['delayed', null, []]);
  await empty(db, 'resp3');
  // Not put before the keys of commands that it does not know.
  assert.equal(await client('resp3', { keyPrefix: 'x:' }).call('DQ.LEN', 'resp3'), 1);
}

async function pipeline() {
  const pipe = client('pipeline').pipeline();
  for (let n = 0; n < 100; n++) pipe.call('DQ.ADD', 'pipeline', `job-${n}`, n);
  pipe.call('DQ.LEN', 'pipeline').call('DQ.POP', 'pipeline', 'COUNT', 100);
  const replies = (await pipe.exec()).map(([error, reply]) => error ?? reply);
  assert.equal(replies[99], 'job-99');
  assert.equal(replies[100], 100);
  assert.deepEqual(replies[101].map((job) => Number(job[1])), [...Array(100).keys()]);
}

async function multi() {
  const transaction = client('multi').multi();
  for (let n = 0; n < 7; n++) transaction.call('DQ.ADD', 'multi', `job-${n}`, n);
  transaction
    .call('DQ.LEN', 'multi')
    .call('DQ.BPOP', 'multi', 0)
    .call('DQ.ACK', 'multi', 'job-0')
    .call('DQ.BPOP', 'nothing', 0); // does not wait in a transaction
  const replies = (await transaction.exec()).map(([error, reply]) => error ?? reply);
  assert.equal(replies[7], 7);
  assert.deepEqual(replies[8].slice(0, 3), ['multi', 'job-0', '0']);
  assert.deepEqual(replies.slice(9), [1, null]);
}

async function timeout() {
  const waits = ['DQ.BPOP', 'timeout', '2.5'];
  // By default there is none: a job comes when it is due, and nothing is nothing.
  const db = client('timeout');
  assert.deepEqual([db.options.socketTimeout, db.options.commandTimeout], [undefined, undefined]);
  await db.call('DQ.ADD', 'timeout', 'a', 'x', 'DELAY', 1500);
  assert.deepEqual((await db.call(...waits)).slice(1, 3), ['a', 'x']);
  await db.call('DQ.ACK', 'timeout', 'a');
  // Meanwhile everything else on that connection waits.
  const wait = db.call(...waits);
  const other = db.call('DQ.LEN', 'timeout');
  assert.equal(await settled(other, 500), false);
  assert.equal(await wait, null);
  await other;
  // A command timeout that is shorter gives up, but the server is not told: the job goes to nobody.
  const short = client('timeout', { commandTimeout: 1000 });
  await assert.rejects(short.call(...waits), /timed out/);
  await db.call('DQ.ADD', 'timeout', 'b', 'x');
  assert.equal(await db.call('DQ.LEN', 'timeout', 'RESERVED'), 1);
  await db.call('DQ.ACK', 'timeout', 'b');
}

async function cluster() {
  const db = new Cluster([{ host: '127.0.0.1', port: port('cluster') }]).on('error', () => {});
  // Of a command that it does not know ioredis does not know the key, and asks any node; so it is told.
  const send = (queue, ...command) => {
    const [name, ...rest] = command;
    const made = new Command(name, rest, { replyEncoding: 'utf8' });
    made.slot = calculateSlot(queue);
    return db.sendCommand(made);
  };
  for (let n = 0; n < 30; n++) {
    const queue = `queue-${n}`;
    assert.equal(await send(queue, 'DQ.ADD', queue, 'a', n), 'a');
    const job = await send(queue, 'DQ.BPOP', `{${queue}}:urgent`, queue, 1);
    assert.deepEqual(job.slice(0, 3), [queue, 'a', String(n)]);
    assert.equal(await send(queue, 'DQ.ACK', queue, 'WITHTOKENS', 'a', job[3]), 1);
    assert.equal(await send(queue, 'DQ.POP', queue), null);
  }
  db.disconnect();
}

const { binary, tokens } = common(ask, askBytes);
await run([resp2, resp3, pipeline, multi, binary, tokens, timeout, cluster]);
