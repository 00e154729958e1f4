// What callers get wrong: each is refused before anything is sent, in a sentence that says what to write.

import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { inspect } from 'node:util';
import { ConfigurationError, handler, Queue, Worker } from 'dq-redis';
import { withServer } from 'dq-redis/testing';

const dq = withServer({ before, after, beforeEach });
const NOWHERE = 'redis://127.0.0.1:1';
const queue = new Queue(NOWHERE, 'orders');
const work = () => {};
const BACKOFF = /^backoff must be an array of waits in milliseconds, such as \[60_000\], not 60000$/;

const MISTAKES = [
  [
    'a delay of 200 years',
    /^delay: 6311390400000 ms is not between 0 and 4398046511103$/,
    () => queue.add(1, { delay: 6311390400000 }),
  ],
  ['half a priority', /^priority must be a whole number, not 1.5$/, () => queue.add(1, { priority: 1.5 })],
  ['a priority of 33 bits', /^priority: 2147483648 is not between/, () => queue.add(1, { priority: 2 ** 31 })],
  ['a long group', /^group: 257 bytes is not between 1 and 256$/, () => queue.add(1, { group: 'g'.repeat(257) })],
  ['a star for an id', /^id: "\*" is not an id; leave it out for a new one$/, () => queue.add(1, { id: '*' })],
  ['a star for the id of a rule', /^id: "\*" is not an id/, () => queue.every(1000, 1, { id: '*' })],
  ['a delay of a rule', /^every takes no delay: its rule says/, () => queue.every(1000, 1, { id: 'r', delay: 5 })],
  [
    'an option with two letters swapped',
    /^add has no option 'dealy': did you mean 'delay'\?/,
    () => queue.add(1, { dealy: 5 }),
  ],
  ['an option of BullMQ', /did you mean 'id'\?/, () => queue.add(1, { jobId: 'a' })],
  [
    'a forgotten await',
    /JSON cannot hold a promise: was an await forgotten/,
    () => queue.add(Promise.reject(new Error('lost'))),
  ],
  ['a forgotten await inside', /a promise \(user\): was an await/, () => queue.add({ user: Promise.resolve(1) })],
  ['a Map', /JSON cannot hold an object of Map: it would be empty/, () => queue.add(new Map([[1, 2]]))],
  ['a Set in an array', /an object of Set \(1\): it would/, () => queue.add([1, new Set()], { kind: 'k' })],
  ['an error', /an object of TypeError \(error\)/, () => queue.addMany([{ data: { error: new TypeError('no') } }])],
  ['an error with a code', /an object of Error: it/, () => queue.add(Object.assign(new Error('no'), { code: 'E' }))],
  ['undefined', /data is undefined: a job without data has null/, () => queue.add(undefined)],
  ['undefined in a rule', /data is undefined/, () => queue.every(60_000, undefined, { id: 'e' })],
  [
    'half a rate',
    /rate must be a number of jobs and a window, such as \[100, 60_000\], or 0, not 5/,
    () => queue.configure({ rate: 5 }),
  ],
  ['an option in capitals', /did you mean 'maxlen'\?/, () => queue.configure({ maxLen: 5 })],
  [
    'an option that nothing is like',
    /'colour': Its options are delay, at, id, /,
    () => queue.add(1, { colour: 'red' }),
  ],
  [
    'a number for options',
    /^add takes its options as an object, { delay: \.\.\. }, not 5000$/,
    () => queue.add(1, 5000),
  ],
  ['null for options', /not null$/, () => queue.add(1, null)],
  ['in many jobs', /^a job of addMany has no option 'prio'.*priority/, () => queue.addMany([{ data: 1, prio: 1 }])],
  [
    'many jobs of data alone',
    /^a job of addMany takes its options as an object, { data: \.\.\. }/,
    () => queue.addMany([1]),
  ],
  [
    'a state for options',
    /^len takes its options as an object, { state: \.\.\. }, not 'delayed'$/,
    () => queue.len('delayed'),
  ],
  ['a count for options', /^pop takes .*{ count: \.\.\. }, not 5$/, () => queue.pop(5)],
  ['of bpop', /^bpop has no option 'limit'/, () => queue.bpop(1, { limit: 5 })],
  ['of peek', /^peek has no option 'from'/, () => queue.peek('ready', { from: new Date() })],
  ['of scan', /^scan has no option 'states': did you mean 'state'/, () => queue.scan('0', { states: 'ready' })],
  ['of ids', /^ids has no option 'shard'/, () => queue.ids({ shard: 1 }).next()],
  ['of groups', /^groups has no option/, () => queue.groups('0', { macth: 'x' })],
  ['of delete', /^delete has no option 'unreservd'/, () => queue.delete('a', { unreservd: true })],
  ['of touch', /^touch has no option 'lease'/, () => queue.touch('a', '1', { lease: 5 })],
  ['of touchMany', /^touchMany has no option/, () => queue.touchMany({ a: '1' }, { tt: 5 })],
  ['of nack', /^nack has no option 'reasons'/, () => queue.nack('a', '1', { reasons: 'x' })],
  ['of nackMany', /^nackMany has no option/, () => queue.nackMany({ a: '1' }, { x: 'x' })],
  ['nothing to reschedule', /^reschedule needs a new delay, at or priority/, () => queue.reschedule('a')],
  ['of reschedule', /^reschedule has no option 'delai'/, () => queue.reschedule('a', { delai: 5 })],
  [
    'a delay in words',
    /^delay must be a number .* as 30 \* 60_000 .* not '30m'$/,
    () => queue.add(1, { delay: '30m' }),
  ],
  ['a negative delay', /^delay: -5 ms is not between 0 and 4398046511103$/, () => queue.add(1, { delay: -5 })],
  ['a delay and an instant', /^delay and at cannot be combined$/, () => queue.add('x', { delay: 1, at: new Date() })],
  ['bytes of a kind', /must be what JSON can hold$/, () => queue.add(Buffer.from('x'), { kind: 'k' })],
  ['a mode', /^mode must be one of/, () => queue.nack('a', '1', { mode: 'loud' })],
  ['less than no shards', /shards/, () => new Queue(NOWHERE, 'q', { shards: -1 })],
  ['more weights than queues', /^weights: one for each queue$/, () => new Worker(queue, work, { weights: [1, 2] })],
  ['no room at all', /^concurrency must be .* 1 or more, not 0$/, () => new Worker(queue, work, { concurrency: 0 })],
  ['a number for an instant', /^at is a Date, as .*, not 5$/, () => queue.add(1, { at: 5 })],
  ['a ladder of one number', BACKOFF, () => queue.add(1, { backoff: 60_000 })],
  ['a condition', /^ifExists must be one of replace, .*, not 'skip'$/, () => queue.add(1, { ifExists: 'skip' })],
  ['a number for an id', /^an id must be text or bytes, such as '17', not 17$/, () => queue.add(1, { id: 17 })],
  ['a number for an id to look at', /^an id must be text or bytes/, () => queue.get(17)],
  [
    'cron without its options',
    /^cron needs an id in its options, as { id: 'report' }/,
    () => queue.cron('0 9 * * *', 1),
  ],
  ['cron without an id', /^cron needs an id/, () => queue.cron('0 9 * * *', 1, { tz: 'UTC' })],
  ['cron with a timezone', /did you mean 'tz'/, () => queue.cron('0 9 * * *', 1, { id: 'a', timezone: 'UTC' })],
  ['every without its options', /^every needs an id/, () => queue.every(1000, 1)],
  ['of every', /^every has no option 'tz'/, () => queue.every(1000, 1, { id: 'a', tz: 'UTC' })],
  ['of a queue', /^a queue has no option 'shard': did you mean 'shards'/, () => new Queue(NOWHERE, 'q', { shard: 2 })],
  ["a number for a queue's name", /^a queue's name must be text or bytes/, () => new Queue(NOWHERE, 5)],
  [
    'a name for a queue',
    /^a worker needs a Queue, not 'jobs': new Worker\(new Queue\('redis:.*'jobs'\)/,
    () => new Worker('jobs', work),
  ],
  ['nothing for a queue', /^a worker needs a Queue, not undefined/, () => new Worker()],
  [
    'of a worker',
    /^a worker has no option 'concurency': did you mean 'concurrency'/,
    () => new Worker(queue, work, { concurency: 5 }),
  ],
  ['of a worker without a processor', /did you mean 'attempts'/, () => new Worker(queue, { retries: 5 })],
  ['of a handler', /^a handler has no option 'concurrency'/, () => handler(work, { concurrency: 5 })],
  [
    'of a kind',
    /^a handler has no option 'retryFor': did you mean 'retryOn'/,
    () => new Worker(queue).job('a', work, { retryFor: [Error] }),
  ],
  ['of run', /^run has no option 'signal'/, () => new Worker(queue, work).run({ signal: false })],
  ['errors by their names', /^retryOn must be an array of classes/, () => handler(work, { retryOn: ['Error'] })],
  ['one class of errors', /^giveUpOn must be an array of classes/, () => new Worker(queue, work, { giveUpOn: Error })],
  ['a timeout of nothing', /^timeout must be 1 ms or more/, () => handler(work, { timeout: 0 })],
  ['middleware that is none', /^around must be an array of functions/, () => new Worker(queue, { around: [{}] })],
  ['one middleware', /^around must be an array of functions/, () => new Worker(queue, { around: work })],
  ["a handler's ladder of one number", BACKOFF, () => new Worker(queue, work, { backoff: 60_000 })],
  ['a lease of nothing', /^lease must be 1 ms or more/, () => new Worker(queue, work, { lease: 0 })],
  ['a lease of nothing for all kinds', /^lease must be 1 ms or more/, () => new Worker(queue, { lease: 0 })],
  [
    'text for a number',
    /^concurrency must be a whole number, 1 or more, not '5'$/,
    () => new Worker(queue, work, { concurrency: '5' }),
  ],
  ['a name for a processor', /^a handler must be a function, not 'close'$/, () => new Worker(queue, 'close')],
];

for (const [name, sentence, mistake] of MISTAKES) {
  test(`refused: ${name}`, async () => {
    await assert.rejects(
      async () => mistake(),
      (error) => {
        assert.ok(error instanceof TypeError || error instanceof RangeError, String(error));
        assert.match(error.message, sentence);
        return true;
      },
    );
  });
}

test('options that are undefined are not given', async () => {
  const here = new Queue(dq.url, 'q', { shards: undefined });
  assert.equal(await here.add(1, { id: 'a', dealy: undefined, delay: undefined }), 'a');
});

test('no printed form shows a password', async () => {
  const secret = new Queue('redis://user:hush@127.0.0.1:1', 'orders');
  const worker = new Worker(secret, work);
  const bad = await new Queue('redis://user:hush@127.0.0.1:nowhere', 'orders').add(1).catch((error) => error);
  const refused = await secret.add(1).catch((error) => error);
  const others = ['http://user:hush@h', '//user:hush@h', 'user:hush@h'].map((url) => new Queue(url, 'orders').add(1));
  const other = (await Promise.allSettled(others)).map(({ reason }) => reason);
  assert.ok(other.every((error) => error instanceof ConfigurationError));
  for (const each of [secret, worker, bad, refused, other, { secret, worker }]) {
    for (const text of [inspect(each, { depth: 20, showHidden: true }), String(each), JSON.stringify(each)]) {
      assert.doesNotMatch(text, /hush/);
    }
  }
  assert.equal(inspect(secret), 'Queue(orders)');
});
