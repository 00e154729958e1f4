// The rights that docs/operations.md prints are enough, for every feature.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, beforeEach, test } from 'node:test';
import { GiveUp, Queue, Retry, Snooze, Worker } from 'dq-redis';
import { withServer } from 'dq-redis/testing';
import ioredis from 'ioredis';
import * as redis from 'redis';
import { until } from './until.mjs';

const dq = withServer({ before, after, beforeEach });
const page = readFileSync(new URL('../operations.md', import.meta.url), 'utf8');
const path = () => dq.url.slice('unix://'.length);
const LEASE_MS = 900;
const silent = { info() {}, warn() {}, error() {} };

const CLIENTS = {
  ioredis: (username) => new ioredis({ path: path(), username, password: 'CHANGE-ME', enableReadyCheck: false }),
  'node-redis': (username) =>
    redis.createClient({ socket: { path: path() }, username, password: 'CHANGE-ME' }).on('error', () => {}),
};

/** Gives the user the rights of the page, without those. */
async function grant(user, ...without) {
  const [line] = page.match(new RegExp(`^ *user ${user} .*$`, 'm'));
  const [, , ...rules] = line.trim().split(' ');
  const admin = new ioredis(path());
  await admin.call('ACL', 'SETUSER', user, 'reset', ...rules.filter((rule) => !without.includes(rule)));
  await admin.quit();
}

const DEEDS = {
  done: () => {},
  failed: () => {
    throw new Error('no');
  },
  retried: () => {
    throw new Retry(60_000, 'later');
  },
  snoozed: () => {
    throw new Snooze(60_000);
  },
  'given up': () => {
    throw new GiveUp('no');
  },
  slow: (job) => job.pause(60_000),
  flow: async (job) => {
    await job.step('one', () => job.progress(0.5));
    await job.sleep('nap', 1);
    await job.wait('signed', 60_000);
    return (await job.spawn([{ data: 'done', id: 'part' }])).map(({ outcome }) => outcome);
  },
  part: () => {},
};

async function work(client) {
  const producer = new Queue(dq.url.replace('unix://', 'unix://library-producer:CHANGE-ME@'), 'orders');
  const { part, ...deeds } = DEEDS;
  for (const id of Object.keys(deeds)) {
    // The wait for its end may begin after it.
    await producer.add(id, { id, kind: id === 'slow' ? 'slow' : undefined, keep: id === 'flow' ? 60_000 : undefined });
  }
  await producer.addMany([1, 2].map((data) => ({ data, delay: 1_000_000 })));
  await producer.chain([1, 2].map((data) => ({ data, delay: 1_000_000 })));
  await producer.reschedule('done', { priority: -1 });
  await producer.add('x', { id: 'cancelled', delay: 1000 });
  assert.equal(await producer.delete('cancelled'), 1);
  const began = new Set();
  const handle = (job) => {
    began.add(job.id);
    return DEEDS[job.id](job);
  };
  const worker = new Worker(new Queue(client, 'orders'), handle, { lease: 600, drain: 0, logger: silent });
  worker.job('slow', handle, { lease: LEASE_MS });
  worker.start();
  await until(() => began.size === Object.keys(deeds).length, 'all have begun');
  const ends = producer.wait('flow', 60_000);
  const waits = async () => {
    await dq.clock.advance(1);
    return (await producer.get('flow')).awaits === 'signed';
  };
  await until(waits, 'it waits for a signal');
  await Promise.all([producer.wait('none', 60_000).catch(() => {}), producer.signal('flow', 'signed')]);
  assert.deepEqual(await ends, ['done']);
  const isRenewed = async () => (await producer.get('slow')).deadline - (await dq.clock.now()) === LEASE_MS;
  await until(isRenewed, 'it has the lease of its kind');
  await until(async () => (await producer.len({ state: 'reserved' })) === 1, 'all but one are settled');
  await dq.clock.advance(50);
  await until(isRenewed, 'a heartbeat');
  await worker.stop();
  await worker.join();
  assert.equal((await producer.get('slow')).state, 'ready');
  assert.deepEqual(
    await Promise.all(['done', 'failed', 'given up'].map(async (id) => (await producer.get(id))?.state)),
    [undefined, 'delayed', 'dead'],
  );
  await producer.close();
}

for (const [name, connect] of Object.entries(CLIENTS)) {
  test(`the rights of the page are enough: ${name}`, { timeout: 120_000 }, async () => {
    await grant('library-producer');
    await grant('library-worker');
    const client = connect('library-worker');
    await work(client);
    (client.destroy ?? client.disconnect).call(client);
  });
}

test('without optional rights it goes on, and says once what it does without', { timeout: 120_000 }, async () => {
  await grant('library-worker', '+dq.unblock', '+dq.btouch', '+dq.get', '+dq.step');
  const queue = new Queue(dq.url, 'orders');
  const client = CLIENTS.ioredis('library-worker');
  const said = [];
  const logger = { ...silent, warn: (text) => said.push(text) };
  let isBegun = false;
  const slow = async (job) => {
    isBegun = true;
    await until(() => said.some((text) => text.includes('DQ.BTOUCH')), 'it says that it does not hear');
    await job.progress(0.5);
  };
  const worker = new Worker(new Queue(client, 'orders'), slow, { concurrency: 2, logger });
  await queue.add('killer', { id: 'killer', attempts: 2, ttr: 1000 });
  assert.equal((await queue.pop()).length, 1);
  await dq.clock.advance(1001);
  await queue.add('good', { id: 'good' });
  worker.start();
  await until(async () => isBegun && (await queue.len()) === 0, 'both are done');
  await worker.stop();
  await worker.join();
  for (const command of ['DQ.BTOUCH', 'DQ.GET', 'DQ.UNBLOCK']) {
    assert.equal(said.filter((text) => text.includes(`refuses ${command}:`)).length, 1, `${command} in ${said}`);
  }
  client.disconnect();
  await queue.close();
});
