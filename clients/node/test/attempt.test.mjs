// What steps mean, and how attempts end that wait: without a server.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Cancelled, Handler, jsonCodec, StepError, Suspended } from 'dq-redis';
import { Attempt, idsOf } from '../dist/attempt.js';
import * as core from '../dist/core.js';
import { Delivery } from '../dist/delivery.js';
import { verdict } from '../dist/guard.js';
import { readEnded, writeEnded } from '../dist/results.js';

const TOKEN = '1882361448423751680';
const handler = new Handler(() => {}, { backoff: [7] });

function delivery({ steps = {}, results = [] } = {}) {
  const row = [Buffer.from('id'), Buffer.from('{}'), Buffer.from(TOKEN), 1, 2, 1, results, [], [60_000, 0, null]];
  const kept = new Map(Object.entries(steps).map(([name, value]) => [name, Buffer.from(value)]));
  return new Delivery(Buffer.from('q'), row, kept, jsonCodec, null);
}

const words = (command) => command.map(String).join(' ');

/** What the server is told of an attempt that does so. */
function ended(use, given) {
  const found = delivery(given);
  assert.throws(() => use(new Attempt(found)), Suspended);
  const made = core.ended(found, handler, verdict(found, [found], { value: 'dropped' }, handler));
  return { made, commands: made.commands.map(shown) };
}

const NACK = `DQ.NACK q id TOKEN ${TOKEN} SILENT`;
const STEP = `DQ.STEP q id ${TOKEN}`;
/** Without its script. */
const shown = ([name, script, ...rest]) => words(name === 'EVAL' ? [name, ...rest] : [name, script, ...rest]);
const one = [Buffer.from('a')];

for (const [name, use, commands, given] of [
  ['a sleep', (it) => it.sleep('nap', 5), [`EVAL 1 q 6 ${STEP} nap  8 ${NACK} DELAY 5`]],
  ['a wait', (it) => it.wait('signed', null), [`${NACK} AWAIT signed`]],
  [
    'a wait with a limit',
    (it) => it.wait('signed', 9),
    [`EVAL 1 q 6 ${STEP} dq:wait:signed waiting 10 ${NACK} AWAIT signed DELAY 9`],
  ],
  ['other jobs', (it) => it.after(it.join(), one, 'run'), [`${NACK} AFTER 1 a ONDEAD RUN`]],
  [
    'jobs that it adds',
    (it) => it.after(it.join('x'), one, 'die', [['DQ.ADD', 'q', 'a', '1', 'NX']]),
    [`EVAL 1 q 5 DQ.ADD q a 1 NX 11 ${NACK} AFTER 1 a ONDEAD DIE`],
  ],
  [
    'other jobs than those before',
    (it) => it.after(it.join(), one, 'wait'),
    [`${NACK} AFTER 1 a ONDEAD WAIT`],
    { results: [[Buffer.from('b'), 'done', null]] },
  ],
]) {
  test(`the attempt ends: ${name}`, () => assert.deepEqual(ended(use, given).commands, commands));
}

test('what is kept is not waited for', () => {
  const results = [[Buffer.from('a'), 'done', Buffer.from('1')]];
  const after = writeEnded(delivery({ results }).results);
  const steps = { nap: '', one: '1', signed: '2', 'dq:wait:late': 'waiting', 'dq:wait:over': 'over', over: '3' };
  const it = new Attempt(delivery({ results, steps: { ...steps, 'dq:after:2': after } }));
  it.sleep('nap', 5);
  assert.equal(String(it.step('one')), '1');
  assert.equal(it.step('two'), null);
  assert.equal(String(it.wait('signed', 5).value), '2');
  assert.deepEqual(it.wait('late', 5), { keep: 'dq:wait:late' });
  assert.throws(() => it.wait('over', 5), { name: 'TimedOut', timeoutMs: 5 });
  assert.deepEqual(it.after(it.join(), one, 'run').keep, { step: 'dq:after:1', value: after });
  assert.equal(it.after(it.join(), one, 'run').keep, null);
  assert.throws(() => readEnded(Buffer.from('{'), 'x'), StepError);
  assert.deepEqual(idsOf(['a', 'b', 'a']).map(String), ['a', 'b']);
  assert.throws(() => idsOf([]), TypeError);
});

test('nothing more is said of a job whose time is over', () => {
  const found = delivery();
  const it = new Attempt(found);
  found.tell('timeout');
  assert.throws(() => it.step('a'), Cancelled);
});

test('a sleep is lost with its answer, and refused with an error', () => {
  const { made } = ended((it) => it.sleep('nap', 5));
  const full = new Error('MAXBYTES queue is full');
  assert.equal(made.isLost(made.answer([null])), true);
  assert.equal(made.isLost(made.answer([Buffer.from('delayed')])), false);
  assert.equal(made.isWait, true);
  assert.equal(made.refused(full), true);
  assert.equal(made.isWait, false);
  assert.deepEqual(made.commands.map(words), [`DQ.NACK q id TOKEN ${TOKEN} DELAY 7 REASON MAXBYTES queue is full`]);
  made.report = ['DQ.TOUCH'];
  assert.equal(made.answer([full, 1]), 1);
  assert.equal(made.commands.length, 2);
  assert.deepEqual([made.refused(full), made.refused(full), made.refused(full)], [true, true, false]);
});
