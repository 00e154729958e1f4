// What the worker decides, without a server.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Cancelled, ConfigurationError, GiveUp, Handler, jsonCodec, PayloadError, Retry, Snooze } from 'dq-redis';
import * as core from '../dist/core.js';
import { Job, readEnvelope, writeEnvelope } from '../dist/job.js';
import { crc32, slotOf, toBytes, toText } from '../dist/text.js';
import { exponentialMs, instantToMs, toMs } from '../dist/times.js';

const TOKEN = Buffer.from('1882361448423751680');
const KEY = Buffer.from('q');
const NOBODY = { settle() {}, isStale: () => false };
const handler = (options) => new Handler(() => {}, options);

function delivery({ attempt = 1, handler: made = handler(), payload = '{}', id = 'id', key = KEY } = {}) {
  const row = [Buffer.from(id), Buffer.from(payload), TOKEN, attempt, 2000, 1000];
  const found = new core.Delivery(key, row, NOBODY);
  found.handler = made;
  found.job = new Job(found, jsonCodec);
  return found;
}

const info = ({ backoff = [], attempts = 0, token = TOKEN } = {}) => [
  ...[Buffer.from('token'), token],
  ...[Buffer.from('backoff'), backoff],
  ...[Buffer.from('max-attempts'), attempts],
];

const words = (command) => command.map((word) => (Buffer.isBuffer(word) ? word.toString() : word));

/** The options of the NACK that follows, or the verdict. */
function afterFailure(error, reply, rest) {
  const outcome = core.ended(delivery(rest), error);
  assert.deepEqual(words(outcome.command), ['DQ.GET', 'q', 'id']);
  return outcome.answered(reply) ? outcome.verdict : words(outcome.command).slice(5);
}

test('success is acknowledged with the token', () => {
  const outcome = core.done(delivery());
  assert.deepEqual(words(outcome.command), ['DQ.ACK', 'q', 'WITHTOKENS', 'id', String(TOKEN)]);
  assert.equal(outcome.answered(1), true);
  assert.equal(outcome.verdict, 'done');
});

test('an ACK that finds nothing is lost', () => {
  const outcome = core.done(delivery());
  outcome.answered(0);
  assert.equal(outcome.verdict, 'lost');
});

test('the ladder of the job goes first', () => {
  const options = afterFailure(new Error('no'), info({ backoff: [1000] }), { handler: handler({ backoff: [7] }) });
  assert.deepEqual(options, ['REASON', 'Error: no']);
});

test('the ladder of the handler is next, and its last step repeats', () => {
  const made = handler({ backoff: [1000, 5000] });
  const delays = [1, 2, 3].map((attempt) => afterFailure(new Error(), info(), { handler: made, attempt })[1]);
  assert.deepEqual(delays, [1000, 5000, 5000]);
});

test('without a ladder the wait doubles to an hour', () => {
  for (const [attempt, seconds] of [
    [1, 1],
    [2, 2],
    [5, 16],
    [13, 3600],
    [10_000, 3600],
  ]) {
    const delay = exponentialMs(attempt, 1000, 3_600_000) / 1000;
    assert.ok(seconds <= delay && delay <= seconds * 1.25, `${attempt}: ${delay}`);
  }
});

test('attempts of the handler end a job without its own', () => {
  const made = handler({ attempts: 2 });
  assert.equal(afterFailure(new Error(), info(), { handler: made, attempt: 1 })[0], 'DELAY');
  assert.equal(afterFailure(new Error(), info(), { handler: made, attempt: 2 })[0], 'FATAL');
  assert.equal(afterFailure(new Error(), info({ attempts: 9 }), { handler: made, attempt: 2 })[0], 'DELAY');
});

test('a failure of a job that somebody else has is lost', () => {
  assert.equal(afterFailure(new Error(), info({ token: Buffer.from('1') })), 'lost');
  assert.equal(afterFailure(new Error(), info({ token: null })), 'lost');
  assert.equal(afterFailure(new Error(), null), 'lost');
});

test('what a handler may say', () => {
  const said = (error) => words(core.ended(delivery(), error).command).slice(5);
  assert.deepEqual(afterFailure(new Retry(60_000, 'busy'), info({ backoff: [1] })), [
    'DELAY',
    60_000,
    'REASON',
    'busy',
  ]);
  assert.deepEqual(said(new Snooze(60_000)), ['SILENT', 'DELAY', 60_000]);
  assert.deepEqual(said(new GiveUp('bad')), ['FATAL', 'REASON', 'bad']);
});

test('nothing comes back at once', () => {
  assert.equal(core.ended(delivery(), new Snooze(0)).command[7], 100);
  assert.equal(afterFailure(new Retry(0), info())[1], 100);
});

test('only a job that was told to end is given back for an abort', async () => {
  const told = delivery();
  const { signal } = told.job;
  told.job.tell('stopping');
  assert.ok(signal.aborted && signal.reason instanceof Cancelled);
  const aborted = await fetch('http://127.0.0.1:1', { signal }).catch((error) => error);
  const timed = await import('node:timers/promises').then((it) =>
    it.setTimeout(1, null, { signal }).catch((error) => error),
  );
  for (const error of [aborted, timed]) {
    assert.deepEqual(words(core.ended(told, error).command).slice(5), ['SILENT'], String(error));
  }
  assert.equal(core.ended(told, new Error('of its own')).command[0], 'DQ.GET');
  assert.equal(core.ended(delivery(), timed).command[0], 'DQ.GET');
});

test('reasons are cut, are UTF-8, and name the class', () => {
  class Declined extends Error {}
  const text = (error) => core.reason(error).toString();
  assert.equal(text(new TypeError('x'.repeat(5000))), 'TypeError: ' + 'x'.repeat(1013));
  assert.equal(text(new Declined('later')), 'Declined: later');
  assert.equal(text(new RangeError()), 'RangeError');
  assert.equal(text('a text'), 'a text');
  assert.equal(text(undefined), 'undefined');
  assert.equal(text(Object.create(null)), 'an error that has no text');
});

test('one heartbeat and one return for each queue', () => {
  const [one, two, other] = [delivery(), delivery({ id: 'x' }), delivery({ key: Buffer.from('r') })];
  const beats = core.heartbeats([one, other, two], 3000).map(([command]) => words(command));
  const token = String(TOKEN);
  assert.deepEqual(beats, [
    ['DQ.TOUCH', 'q', 'IDS', 2, 'id', token, 'x', token, 'TTR', 3000],
    ['DQ.TOUCH', 'r', 'IDS', 1, 'id', token, 'TTR', 3000],
  ]);
  assert.deepEqual(core.giveBack([other]).map(words), [['DQ.NACK', 'r', 'IDS', 1, 'id', token, 'SILENT']]);
});

for (const [message, word] of [
  ["ERR unknown command 'DQ.BPOP', with args beginning with: ", 'loadmodule'],
  ['WRONGPASS invalid username-password pair or user is disabled.', 'password'],
  ['NOAUTH Authentication required.', 'password'],
  ['NOPERM this user has no permissions', 'ACL'],
  ['WRONGTYPE Operation against a key', 'another type'],
  ['ERR syntax error', 'older'],
  ['ERR DB index is out of range', 'database'],
]) {
  test(`waiting does not mend: ${message}`, () =>
    assert.match(core.fatal(new Error(message)).message, new RegExp(word)));
}

for (const message of [
  'MISCONF Redis is configured to save RDB snapshots',
  'UNBLOCKED force unblock from blocking operation',
  'CLUSTERDOWN The cluster is down',
  'LOADING Redis is loading the dataset in memory',
  'connect ECONNREFUSED 127.0.0.1:6379',
  'Connection is closed.',
  'Socket closed unexpectedly',
]) {
  test(`waited for: ${message}`, () => assert.equal(core.fatal(new Error(message)), null));
}

test('a fault of the program is not waited for', () => assert.ok(core.fatal(new TypeError('x is not a function'))));

test('handlers by kind', () => {
  const [one, rest] = [handler({ kind: 'one' }), handler()];
  const handlers = new core.Handlers([one, rest]);
  const chosen = (payload) => handlers.choose(delivery({ payload }).job);
  assert.equal(chosen(writeEnvelope({}, 'one')), one);
  assert.equal(chosen(writeEnvelope({}, 'two')), rest);
  assert.equal(chosen('{}'), rest);
  assert.equal(chosen('{"dq":2,"kind":"one","data":1}'), null);
  assert.equal(new core.Handlers([one]).choose(delivery().job), null);
  assert.throws(() => handlers.add(handler()), ConfigurationError);
  assert.throws(() => handlers.add(handler({ kind: 'one' })), ConfigurationError);
});

for (const payload of [
  '',
  '{',
  '[]',
  '{"dq":1}',
  '{"dq":"1","kind":"a","data":1}',
  '{"dq":true,"kind":"a","data":1}',
  '{"a":"dq"}',
]) {
  test(`no envelope: ${payload}`, () => assert.equal(readEnvelope(Buffer.from(payload)), null));
}

test('data, kind and headers', () => {
  const payload = writeEnvelope({ a: 'ä' }, 'close', { x: 'y' });
  assert.equal(payload.toString(), '{"dq":1,"kind":"close","data":{"a":"ä"},"headers":{"x":"y"}}');
  const { job } = delivery({ payload });
  assert.deepEqual([job.kind, job.data, job.headers], ['close', { a: 'ä' }, { x: 'y' }]);
  assert.throws(() => delivery({ payload: Buffer.from([0xff]) }).job.data, PayloadError);
  assert.throws(() => delivery({ payload: Buffer.from([0x22, 0xff, 0x22]) }).job.data, PayloadError);
});

test('ids of any bytes survive, and are the surrogates that Python makes', () => {
  const raw = Buffer.from(Array.from({ length: 256 }, (_, n) => n));
  assert.deepEqual(toBytes(toText(raw)), raw);
  assert.equal(toText(Buffer.from([0x61, 0xff, 0xe2, 0x82, 0xac, 0xe2, 0x82])), 'a\udcff€\udce2\udc82');
  assert.equal(toText(Buffer.from('ä€😀')), 'ä€😀');
  assert.deepEqual(toBytes('😀'), Buffer.from('😀'));
});

test('checksums are those of zlib and of the cluster', () => {
  assert.equal(crc32(Buffer.from('123456789')), 0xcbf43926);
  assert.equal(slotOf(Buffer.from('123456789')), 0x31c3);
  assert.equal(slotOf(Buffer.from('q:{7}')), slotOf(Buffer.from('7')));
  assert.equal(slotOf(Buffer.from('a{}b')), slotOf(Buffer.from('a{}b')));
  assert.notEqual(slotOf(Buffer.from('a{}b')), slotOf(Buffer.from('')));
});

test('durations are whole milliseconds, rounded up; instants are Dates', () => {
  assert.equal(toMs(0.01), 1);
  assert.equal(toMs((0.1 + 0.2) * 1000), 300);
  for (const wrong of ['5m', null, NaN, Infinity]) assert.throws(() => toMs(wrong), TypeError);
  for (const wrong of [1_795_159_827, '2030-01-01', new Date(NaN)]) assert.throws(() => instantToMs(wrong), TypeError);
});

test('weights decide which queue comes first', () => {
  const keys = [Buffer.from('a'), Buffer.from('b')];
  const first = (fetches) => Array.from({ length: 500 }, () => String(fetches.command(1, 5000)[1]));
  const second = first(new core.Fetches(keys, [9, 1], 1000)).filter((key) => key === 'b').length;
  assert.ok(second > 0 && second < 150, `${second}`);
  assert.deepEqual(new Set(first(new core.Fetches(keys, null, 1000))), new Set(['a']));
});
