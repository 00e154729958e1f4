// What the worker decides, without a server.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Cancelled, ConfigurationError, GiveUp, Handler, jsonCodec, PayloadError, Retry, Snooze } from 'dq-redis';
import { readEnvelope, writeEnvelope } from '../dist/codec.js';
import * as core from '../dist/core.js';
import { Ends, partsOf } from '../dist/ends.js';
import { fatal, refused } from '../dist/fatal.js';
import { verdict } from '../dist/guard.js';
import { Handlers } from '../dist/handler.js';
import { Delivery } from '../dist/delivery.js';
import { jobOf } from '../dist/job.js';
import { Leases } from '../dist/leases.js';
import { progressOf } from '../dist/progress.js';
import { bytesOf, shown, textOf } from '../dist/format.js';
import { crc32, slotOf, toBytes, toText } from '../dist/text.js';
import { instantToMs, toMs } from '../dist/times.js';

const TOKEN = Buffer.from('1882361448423751680');
const KEY = Buffer.from('q');
const handler = (options) => new Handler(() => {}, options);

function delivery({
  attempt = 1,
  payload = '{}',
  id = 'id',
  key = KEY,
  wait = null,
  attempts = 0,
  codec = jsonCodec,
  results = [],
  steps = {},
  desk = null,
} = {}) {
  const terms = [60_000, attempts, wait];
  const row = [Buffer.from(id), Buffer.from(payload), TOKEN, attempt, 2000, 1000, results, [], terms];
  const kept = new Map(Object.entries(steps).map(([name, value]) => [name, Buffer.from(value)]));
  return new Delivery(key, row, kept, codec, desk);
}

const words = (command) => command.map((word) => (Buffer.isBuffer(word) ? word.toString() : word));

/** The outcome of a handler that threw that. */
function outcome(error, { handler: made = handler(), ...rest } = {}) {
  const found = delivery(rest);
  found.handlerAttempts = made.attempts;
  return core.ended(found, made, verdict(found, [found], { error }, made));
}

/** The options of its NACK. */
const said = (error, rest) => words(outcome(error, rest).commands[0]).slice(5);

test('deliveries to workers that do not know the kind are no attempts of the handler', () => {
  const kept = (count, rest) => {
    const found = delivery({ steps: { 'dq:unknown': count }, ...rest });
    found.handlerAttempts = 3;
    return found;
  };
  assert.deepEqual(words(core.unknown(delivery(), 'x').commands[0]), [
    'DQ.STEP',
    'q',
    'id',
    String(TOKEN),
    'dq:unknown',
    1,
  ]);
  assert.equal(core.unknown(kept('6', { attempt: 9 }), 'x').commands[0].at(-1), 7);
  assert.equal(core.unknown(delivery({ attempt: 14 }), 'x').commands.length, 1);
  for (const [attempt, limit] of [
    [6, 8],
    [8, 8],
    [2, 4], // no more of them than deliveries, as after a KICK
  ]) {
    assert.equal(jobOf(kept('5', { attempt })).maxAttempts, limit);
  }
  assert.equal(kept('5', { attempt: 7, attempts: 7 }).limit, 7);
  for (const count of ['', '-1', 'x', '9'.repeat(5000)]) assert.equal(kept(count, { attempt: 7 }).limit, 3);
});

test('a long result that has cut the connection twice is not sent for a third time', () => {
  for (const [bytes, third] of [
    [2 ** 20, 'DQ.NACK'],
    [2 ** 20 - 1, 'DQ.ACK'],
  ]) {
    const done = core.done(delivery(), Buffer.alloc(bytes));
    for (const isLate of [false, true]) done.cut(isLate);
    assert.equal(done.commands[0][0], 'DQ.ACK');
    done.cut(false);
    assert.equal(done.commands[0][0], third);
    if (third === 'DQ.NACK') assert.equal(String(done.commands[0].at(-1)), 'result cannot be stored: 1048576 bytes');
  }
});

test('a long suspension that has cut the connection twice is a failure', () => {
  const found = delivery();
  const adds = [['DQ.ADD', KEY, 'child', Buffer.alloc(2 ** 20)]];
  found.suspension = {
    for: 'jobs',
    ids: [Buffer.from('child')],
    onDead: 'run',
    adds,
    named: [],
  };
  const end = core.ended(found, handler(), verdict(found, [found], { value: null }, handler()));
  end.cut(false);
  assert.equal(end.commands[0][0], 'EVAL');
  end.cut(false);
  assert.match(
    words(end.commands[0]).join(' '),
    /^DQ\.NACK .* REASON the connection was cut 2 times by commands of 1\d+ /,
  );
});

test('what the server refuses of an end is left out', () => {
  const full = new Error('OOM command not allowed');
  assert.equal(core.done(delivery(), Buffer.from('1')).isRefused(full), true);
  assert.equal(core.done(delivery()).isRefused(full), false);
});

test('a NACK that finds nothing is lost', () => {
  const failed = outcome(new Error());
  assert.equal(failed.isLost(null), true);
  assert.equal(failed.isLost(Buffer.from('delayed')), false);
});

test('nothing comes back at once', () => {
  assert.equal(said(new Snooze(0))[2], 100);
  assert.equal(said(new Retry(0))[1], 100);
});

for (const delay of [NaN, Infinity, -1, '5m', null, undefined, {}, Symbol('x'), 5n]) {
  test(`no delay: ${textOf(delay)}`, () => {
    for (const error of [new Retry(delay), new Snooze(delay)]) {
      const found = delivery();
      const end = verdict(found, [found], { error }, handler());
      assert.deepEqual([end.how, end.waitMs], ['fail', null]);
      assert.match(end.complaint, /^its delay is .*, which is not a number of milliseconds$/);
      assert.equal(core.ended(found, handler(), end).commands[0][5], 'REASON');
    }
  });
}

test('what the server refuses is asked for no more', () => {
  const all = (error, rest) => {
    const made = outcome(error, rest);
    const ways = [words(made.commands[0]).slice(5)];
    while (made.refused(new Error('no'))) ways.push(words(made.commands[0]).slice(5));
    return ways;
  };
  const long = 100 * 365 * 86_400_000;
  const retried = all(new Retry(long, 'later'), { wait: 1000 });
  assert.deepEqual(retried, [['DELAY', long, 'REASON', 'later'], ['REASON', 'later'], []]);
  const snoozed = all(new Snooze(long));
  assert.deepEqual(snoozed[0], ['SILENT', 'DELAY', long]);
  assert.ok(
    snoozed.slice(1).every((options) => !options.includes('SILENT')),
    'a failure',
  );
  assert.deepEqual(all(new GiveUp('no')), [['FATAL', 'REASON', 'no'], ['FATAL']]);
  assert.deepEqual(
    all(new Retry(long, 'later'), {
      handler: handler({ backoff: [7000] }),
    }).slice(1),
    [['DELAY', 7000, 'REASON', 'later'], ['REASON', 'later'], []],
  );
});

test('only a job that was told to end is given back for an abort', async () => {
  const told = delivery();
  const { signal } = jobOf(told);
  told.tell('stopping');
  assert.ok(signal.aborted && signal.reason instanceof Cancelled);
  const aborted = await fetch('http://127.0.0.1:1', { signal }).catch((error) => error);
  const timed = await import('node:timers/promises').then((it) =>
    it.setTimeout(1, null, { signal }).catch((error) => error),
  );
  for (const error of [aborted, timed]) {
    assert.equal(verdict(told, [told], { error }, handler()).how, 'return', String(error));
  }
  assert.equal(verdict(told, [told], { error: new Error('of its own') }, handler()).how, 'fail');
  assert.equal(said(timed)[0], 'REASON');
});

test('reasons are cut, are UTF-8, and name the class', () => {
  class Declined extends Error {}
  class Mute extends Declined {
    get message() {
      throw new RangeError();
    }
  }
  const text = (error) => bytesOf(textOf(error)).toString();
  assert.equal(text(new TypeError('x'.repeat(5000))), 'TypeError: ' + 'x'.repeat(1013));
  assert.equal(text('ä'.repeat(511) + 'a€'), 'ä'.repeat(511) + 'a');
  assert.equal(text('\ud800'), '\ufffd');
  assert.equal(text(new Declined('later')), 'Declined: later');
  assert.equal(text(new RangeError()), 'RangeError');
  assert.equal(text('a text'), 'a text');
  assert.equal(text(undefined), 'undefined');
  assert.equal(text(Symbol('s')), 'Symbol(s)');
  assert.equal(text({ code: 5 }), '{ code: 5 }');
  assert.equal(text(new Mute()), 'Mute (no text: RangeError)');
  assert.equal(text(Object.create(null)), 'object (no text: TypeError)');
  assert.equal(said(new GiveUp(new Declined('why')))[2], 'Declined: why');
});

test('a payload that cannot be decoded is the end of its job, and of no other of the batch', () => {
  const [bad, good] = [delivery({ payload: '{' }), delivery()];
  let error;
  try {
    jobOf(bad).data;
  } catch (thrown) {
    error = thrown;
  }
  assert.ok(error instanceof PayloadError);
  const end = verdict(bad, [good, bad], { error }, handler());
  assert.deepEqual([end.how, end.reason.startsWith('payload cannot be decoded: SyntaxError')], ['give up', true]);
  assert.equal(verdict(good, [good, bad], { error }, handler()).how, 'return');
});

test('what JSON would lose is refused', () => {
  for (const data of [NaN, { a: [1, Infinity] }, { a: null, b: -Infinity }]) {
    assert.throws(() => jsonCodec.encode(data), /JSON cannot hold (NaN|-?Infinity)/);
    assert.throws(() => writeEnvelope(data, 'kind'), TypeError);
  }
  assert.equal(jsonCodec.encode({ a: null, text: 'null' }).toString(), '{"a":null,"text":"null"}');
  assert.equal(jsonCodec.encode(undefined).toString(), 'null');
  assert.throws(() => jsonCodec.encode(() => {}), /JSON cannot hold/);
});

test('one heartbeat and one return for each queue', () => {
  const [one, two, other] = [delivery(), delivery({ id: 'x' }), delivery({ key: Buffer.from('r') })];
  const beats = core.heartbeats([one, other, two]).map(([command]) => words(command));
  const token = String(TOKEN);
  assert.deepEqual(beats, [
    ['DQ.TOUCH', 'q', 'IDS', 2, 'id', token, 'x', token],
    ['DQ.TOUCH', 'r', 'IDS', 1, 'id', token],
  ]);
  const [[back]] = core.giveBack([other]);
  assert.deepEqual(words(back), ['DQ.NACK', 'r', 'IDS', 1, 'id', token, 'SILENT']);
  const lengths = core.leases(new Map([one, two].map((each, n) => [each, 1000 + n])));
  assert.deepEqual(
    lengths.map(([command]) => words(command)),
    [
      ['DQ.TOUCH', 'q', 'IDS', 1, 'id', token, 'TTR', 1000],
      ['DQ.TOUCH', 'q', 'IDS', 1, 'x', token, 'TTR', 1001],
    ],
  );
});

for (const [message, word] of [
  ["ERR unknown command 'DQ.BPOP', with args beginning with: ", 'loadmodule'],
  ['WRONGPASS invalid username-password pair or user is disabled.', 'refuses user name or password'],
  ['NOAUTH Authentication required.', 'none was given'],
  ['NOPERM this user has no permissions', 'ACL'],
  ['WRONGTYPE Operation against a key', 'another type'],
  ['ERR syntax error', 'older'],
  ['ERR DB index is out of range', 'database'],
]) {
  test(`waiting does not mend: ${message}`, () => assert.match(fatal(new Error(message)).message, new RegExp(word)));
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
  test(`waited for: ${message}`, () => assert.equal(fatal(new Error(message)), null));
}

test('a fault of the program is not waited for', () => assert.ok(fatal(new TypeError('x is not a function'))));

test('a server without RESP3 is not said to lack the module', () => {
  for (const text of ["ERR unknown command 'HELLO', with args", 'NOPROTO unsupported protocol version']) {
    assert.match(fatal(new Error(text)).message, /does not speak RESP3/);
  }
});

test('handlers by kind', () => {
  const [one, rest] = [handler({ kind: 'one' }), handler()];
  const handlers = new Handlers([one, rest]);
  const chosen = (payload) => handlers.choose(delivery({ payload }));
  assert.equal(chosen(writeEnvelope({}, 'one')), one);
  assert.equal(chosen(writeEnvelope({}, 'two')), rest);
  assert.equal(chosen('{}'), rest);
  assert.equal(chosen('{"dq":2,"kind":"one","data":1}'), null);
  assert.equal(new Handlers([one]).choose(delivery()), null);
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
  '{"dq":1,"kind":{"toString":1},"data":1}',
]) {
  test(`no envelope: ${payload}`, () => assert.equal(readEnvelope(Buffer.from(payload)), null));
}

test('data that is no UTF-8 is no data', () => {
  assert.throws(() => jobOf(delivery({ payload: Buffer.from([0x22, 0xff, 0x22]) })).data, PayloadError);
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

test('texts are bounded, whatever holds itself', () => {
  const ring = [];
  ring.push(ring, ring, 'x'.repeat(10_000));
  const error = new Error('y'.repeat(10_000), { cause: ring });
  error.cause = error;
  for (const value of [ring, error, { ring, error }, 'z'.repeat(10_000)]) {
    assert.ok(textOf(value).length <= 1024);
    assert.ok(shown(value).length < 4096);
  }
  assert.equal(progressOf(0.5, '\u{1F600}'.repeat(1000)).length, 1024);
  assert.equal(progressOf(0.5, `x${'\u{1F600}'.repeat(1000)}`).length, 1021);
});

test('durations are whole milliseconds, rounded up; instants are Dates', () => {
  assert.equal(toMs(0.01), 1);
  assert.equal(toMs((0.1 + 0.2) * 1000), 300);
  for (const wrong of ['5m', null, NaN]) assert.throws(() => toMs(wrong), TypeError);
  for (const wrong of [-1, Infinity, 6311390400000]) assert.throws(() => toMs(wrong), RangeError);
  for (const wrong of [1_795_159_827, '2030-01-01', new Date(NaN)]) assert.throws(() => instantToMs(wrong), TypeError);
});

test('weights decide which queue comes first', () => {
  const keys = [Buffer.from('a'), Buffer.from('b')];
  const first = (fetches) => Array.from({ length: 500 }, () => String(fetches.command(1, 5000, 0)[1]));
  const second = first(new core.Fetches(keys, [9, 1], null)).filter((key) => key === 'b').length;
  assert.ok(second > 0 && second < 150, `${second}`);
  assert.deepEqual(new Set(first(new core.Fetches(keys, null, null))), new Set(['a']));
});

test('a fetch that gave way goes on with its wait for a batch', () => {
  const fetches = new core.Fetches([KEY], null, null, [50, 2000]);
  const fill = (count, now) => fetches.command(count, 5000, now).slice(5, 8);
  assert.deepEqual(fill(100, 0), ['FILL', 50, 2000]);
  assert.deepEqual(fill(40, 0), ['FILL', 40, 2000]);
  assert.notEqual(fill(1, 0)[0], 'FILL');
  for (const began of [10_000, 11_000]) {
    fill(100, began);
    fetches.fetched(false, began + 250);
  }
  assert.deepEqual(
    [11_500, 20_000].map((now) => fill(100, now)[2]),
    [500, 1],
  );
  fetches.fetched(true, 20_000);
  assert.equal(fill(100, 21_000)[2], 2000);
  fetches.fetched(false, 26_000); // it lasted as long as it could
  assert.equal(fill(100, 27_000)[2], 2000);
});

test('a fill is within its batch', () => {
  for (const fill of [[1, 1], [11, 1], [5, 0], 5]) assert.throws(() => handler({ batch: 10, fill }), /fill/);
});

test('what is said of leases', () => {
  const EXTRAS = ['WITHDUE', 'WITHRESULTS', 'WITHSTEPS', 'WITHTERMS'];
  const options = (lease) => new core.Fetches([KEY], null, lease).command(5, 1000, 0).slice(3);
  assert.deepEqual(options(null), ['COUNT', 5, ...EXTRAS]);
  assert.deepEqual(options({ word: 'LEASE', ms: 7 }), ['COUNT', 5, 'LEASE', 7, ...EXTRAS]);
  const length = (lease, ttr) => new core.Fetches([KEY], null, lease).leaseMs(ttr);
  assert.deepEqual([length(null, 5), length({ word: 'TTR', ms: 7 }, 5)], [5, 7]);
  assert.deepEqual([length({ word: 'LEASE', ms: 7 }, 5), length({ word: 'LEASE', ms: 7 }, 60_000)], [5, 7]);
  const all = (...given) => new Handlers(given.map((lease, n) => handler({ kind: String(n), lease })));
  assert.deepEqual(
    [all(5, 5).leaseMs, all(5, 6).leaseMs, all(5, undefined).leaseMs, all().leaseMs],
    [5, null, null, null],
  );
});

test('a free handler has room for as many jobs as the smallest takes', () => {
  const room = (...batches) => new Handlers(batches.map((batch, n) => handler({ kind: String(n), batch }))).room;
  assert.deepEqual([room(100), room(100, 10), room(100, undefined)], [100, 10, 1]);
});

// --- One ACK for what is done in a turn

async function shared(reply) {
  const told = { lost: [], heard: [] };
  const listener = {
    heard: ({ name }) => told.heard.push(name),
    lost: ({ name }) => told.lost.push(name),
    refused: (delivery) => told.lost.push(`refused ${delivery.name}`),
    uncounted() {},
  };
  const ends = new Ends({ ring() {} }, listener);
  const outcomes = ['a', 'b', 'c'].map((id) => core.done(delivery({ id })));
  outcomes.splice(1, 0, core.done(delivery({ id: 'with a result' }), Buffer.from('1')));
  const parts = partsOf(outcomes);
  const sent = parts.flatMap(({ commands }) => commands).map((command) => command.map(String).slice(2, 5).join(' '));
  assert.deepEqual(sent, ['WITHTOKENS IDS 3', 'RESULTS IDS 1']);
  const trouble = await ends.hear(parts, [reply, Promise.resolve([1])], 1000, () => {});
  return { ...told, trouble, again: ends.take().map(({ delivery: { name } }) => name) };
}

test('jobs that are done in one turn share an ACK, and each has its own answer', async () => {
  const { lost, heard, again } = await shared(Promise.resolve([1, 0, 1]));
  assert.deepEqual([lost, heard.sort(), again], [['b'], ['a', 'b', 'c', 'with a result'], []]);
  const busy = await shared(Promise.resolve(new Error('BUSY a script runs')));
  assert.deepEqual([busy.lost, busy.again], [[], ['a', 'b', 'c']]);
  const cut = await shared(Promise.reject(new Error('the connection is closed')));
  assert.deepEqual([cut.lost, cut.again, cut.trouble.message], [[], ['a', 'b', 'c'], 'the connection is closed']);
});

test('an answer of one word is a code, and one without a code is said whole', () => {
  const said = (answer) => {
    const { code, said, message } = refused(new Error(answer), ['DQ.ADD', 'q', 'a']);
    return [code, said, message.split('DQ.ADD: ')[1]];
  };
  assert.deepEqual(said('NOREPLICAS'), ['NOREPLICAS', '', 'NOREPLICAS']);
  assert.deepEqual(said('OOM no room'), ['OOM', 'no room', 'OOM no room']);
  assert.deepEqual(said('no room'), ['ERR', 'no room', 'ERR no room']);
});

test('how soon an answer must come is known without asking all leases', () => {
  const leases = new Leases(
    () => {},
    () => false,
  );
  const taken = [60_000, 3000, 30_000].map((leaseMs) => ({ leaseMs, sinceMs: 0, endsAt: Infinity }));
  for (const delivery of taken) leases.take(delivery);
  assert.deepEqual([leases.shortestMs, leases.beatMs], [1000, 1000]);
  taken[0].leaseMs = 300;
  leases.changed(0);
  assert.deepEqual([leases.shortestMs, leases.beatMs], [100, 100]);
  for (const delivery of taken.slice(0, 2)) leases.lose(delivery);
  assert.deepEqual([leases.shortestMs, leases.beatMs], [100, 10_000]);
  leases.look();
  assert.equal(leases.shortestMs, 10_000);
});
