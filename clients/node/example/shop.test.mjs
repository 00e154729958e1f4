// How a program that uses dq is tested. The helpers come with the package.

import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { after, before, beforeEach, test } from 'node:test';
import { run, withServer } from 'dq-redis/testing';
import { Declined, Shop } from './shop.mjs';

const dq = withServer({ before, after, beforeEach });
const quiet = { logger: { info() {}, warn() {}, error() {} } };

function open({ declines = 0 } = {}) {
  /** @type {[to: string, text: string][]} */
  const mails = [];
  /** @type {[order: number, amount: number][]} */
  const payments = [];
  const events = new EventEmitter();
  /** @type {(to: string, text: string) => void} */
  const mail = (to, text) => {
    mails.push([to, text]);
    events.emit('mail');
  };
  /** @type {(order: number, amount: number) => void} */
  const pay = (order, amount) => {
    if (declines-- > 0) throw new Declined('try again later');
    payments.push([order, amount]);
  };
  return { shop: new Shop(dq.url, { mail, pay }), mails, payments, mailed: once(events, 'mail') };
}

test('a reminder in 30 days', async () => {
  const { shop, mails } = open();
  await shop.startTrial('ann');
  await shop.startTrial('bob');
  await shop.subscribe('bob');
  const worker = shop.worker();
  await dq.clock.advance({ days: 29 });
  assert.equal(await worker.drain(), 0);
  await dq.clock.advance({ days: 1 });
  assert.equal(await worker.drain(), 1);
  assert.deepEqual(mails, [['ann', 'Your trial ends tomorrow.']]);
});

test('a payment is tried again after a minute, an hour and a day', async () => {
  const { shop, payments } = open({ declines: 3 });
  await shop.order(17, 20);
  const worker = shop.worker(quiet);
  await worker.drain();
  for (const unit of ['minutes', 'hours', 'days']) {
    assert.deepEqual(payments, []);
    await dq.clock.advance({ [unit]: 0.9 });
    assert.equal(await worker.drain(), 0);
    await dq.clock.advance({ [unit]: 0.1 });
    assert.equal(await worker.drain(), 1);
  }
  assert.deepEqual(payments, [[17, 20]]);
});

test('a payment that is declined four times is dead', async () => {
  const { shop } = open({ declines: 4 });
  await shop.order(17, 20);
  const worker = shop.worker(quiet);
  await worker.drain();
  while (await dq.clock.next()) await worker.drain();
  const job = await shop.queue.get('charge:17');
  assert.deepEqual([job?.state, job?.reason], ['dead', 'Declined: try again later']);
});

test('a deploy in the middle of a job', async () => {
  const { shop, mails, mailed } = open();
  await shop.export(1000);
  const worker = shop.worker({ drain: 0 });
  worker.start();
  await mailed;
  await worker.stop();
  const job = await shop.queue.get('export');
  assert.equal(job?.state, 'ready'); // at once, not when its lease ends
  assert.equal(job?.attempts, 0);
  assert.ok(mails.length > 0 && mails.length < 1000);
});

test('a handler without a server', async () => {
  const { shop, payments } = open({ declines: 2 });
  const { state, attempts, waits } = await run(shop.worker(), { order: 17, amount: 20 }, { kind: 'charge' });
  assert.deepEqual([state, attempts, waits, payments], ['done', 3, [60_000, 3_600_000], [[17, 20]]]);
});
