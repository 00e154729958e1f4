// What node-redis makes of dq.

import assert from 'node:assert/strict';
import { createClient, createCluster, RESP_TYPES } from 'redis';
import { common, port, run, settled } from './checks.mjs';

const clients = new Map();

async function client(check, options = {}) {
  const name = check + JSON.stringify(options);
  if (!clients.has(name)) {
    const { socket, ...others } = options;
    const made = createClient({ socket: { port: port(check), host: '127.0.0.1', ...socket }, ...others });
    clients.set(name, await made.on('error', () => {}).connect());
  }
  return clients.get(name);
}

const bytes = { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } };
const ask = async (check, ...command) => (await client(check)).sendCommand(command);
const askBytes = async (check, ...command) => (await client(check)).withCommandOptions(bytes).sendCommand(command);

async function empty(db, queue) {
  assert.equal(await db.sendCommand(['DQ.POP', queue]), null);
  assert.deepEqual(await db.sendCommand(['DQ.POP', queue, 'COUNT', '5']), []);
}

async function resp2() {
  const db = await client('resp2', { RESP: 2 });
  await assert.rejects(async () => db.sendCommand(['DQ.POP', 'resp2', 'COUNT', 1]), TypeError);
  assert.equal(await db.sendCommand(['DQ.ADD', 'resp2', 'a', 'x', 'DELAY', '60000']), 'a');
  const job = await db.sendCommand(['DQ.GET', 'resp2', 'a']);
  assert.ok(Array.isArray(job));
  assert.equal(job[job.indexOf('state') + 1], 'delayed');
  await empty(db, 'resp2');
}

async function resp3() {
  const db = await client('resp3'); // the default
  assert.equal(await db.sendCommand(['DQ.ADD', 'resp3', 'a', 'x', 'DELAY', '60000']), 'a');
  const job = await db.sendCommand(['DQ.GET', 'resp3', 'a']);
  assert.ok(!Array.isArray(job));
  assert.deepEqual([job.state, job.token, job.backoff], ['delayed', null, []]);
  const asMap = { typeMapping: { [RESP_TYPES.MAP]: Map } };
  const map = await db.withCommandOptions(asMap).sendCommand(['DQ.GET', 'resp3', 'a']);
  assert.equal(map.get('state'), 'delayed');
  await empty(db, 'resp3');
}

async function pipeline() {
  const db = await client('pipeline');
  // What is sent in one turn of the event loop goes out together.
  const commands = [...Array(100).keys()].map((n) => ['DQ.ADD', 'pipeline', `job-${n}`, String(n)]);
  commands.push(['DQ.LEN', 'pipeline'], ['DQ.POP', 'pipeline', 'COUNT', '100']);
  const replies = await Promise.all(commands.map((command) => db.sendCommand(command)));
  assert.equal(replies[99], 'job-99');
  assert.equal(replies[100], 100);
  assert.deepEqual(replies[101].map((job) => Number(job[1])), [...Array(100).keys()]);
}

async function multi() {
  const transaction = (await client('multi')).multi();
  for (let n = 0; n < 7; n++) transaction.addCommand(['DQ.ADD', 'multi', `job-${n}`, String(n)]);
  transaction
    .addCommand(['DQ.LEN', 'multi'])
    .addCommand(['DQ.BPOP', 'multi', '0'])
    .addCommand(['DQ.ACK', 'multi', 'job-0'])
    .addCommand(['DQ.BPOP', 'nothing', '0']); // does not wait in a transaction
  const replies = await transaction.exec();
  assert.equal(replies[7], 7);
  assert.deepEqual(replies[8].slice(0, 3), ['multi', 'job-0', '0']);
  assert.deepEqual(replies.slice(9), [1, null]);
}

async function timeout() {
  const waits = ['DQ.BPOP', 'timeout', '2.5'];
  // By default there is none: a job comes when it is due, and nothing is nothing.
  const db = await client('timeout');
  assert.equal(db.options.socket.socketTimeout, undefined);
  await db.sendCommand(['DQ.ADD', 'timeout', 'a', 'x', 'DELAY', '1500']);
  assert.deepEqual((await db.sendCommand(waits)).slice(1, 3), ['a', 'x']);
  // Meanwhile everything else on that connection waits.
  const wait = db.sendCommand(waits);
  const other = db.sendCommand(['DQ.LEN', 'timeout']);
  assert.equal(await settled(other, 500), false);
  assert.equal(await wait, null);
  await other;
  // A socket timeout that is shorter cuts the wait off, and by default ends the client for good.
  const short = await client('timeout', { socket: { socketTimeout: 1000 } });
  await assert.rejects(short.sendCommand(waits));
  assert.equal(short.isReady, false);
}

async function cluster() {
  const rootNodes = [{ url: `redis://127.0.0.1:${port('cluster')}` }];
  const db = await createCluster({ rootNodes }).on('error', () => {}).connect();
  // The first argument names the key by which the node is chosen; the second is "only reads".
  for (let n = 0; n < 30; n++) {
    const queue = `queue-${n}`;
    const send = (...command) => db.sendCommand(queue, false, command);
    assert.equal(await send('DQ.ADD', queue, 'a', String(n)), 'a');
    const job = await send('DQ.BPOP', `{${queue}}:urgent`, queue, '1');
    assert.deepEqual(job.slice(0, 3), [queue, 'a', String(n)]);
    assert.equal(await send('DQ.ACK', queue, 'WITHTOKENS', 'a', job[3]), 1);
    assert.equal(await send('DQ.POP', queue), null);
  }
  await db.close();
}

const { binary, tokens } = common(ask, askBytes);
await run([resp2, resp3, pipeline, multi, binary, tokens, timeout, cluster]);
