// Results, waits, flows and health, with each client.

import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { bytesCodec, ConfigurationError, JobFailed, Queue, QueueFull, Refused, TimedOut, Worker } from 'dq-redis';
import { withServer } from 'dq-redis/testing';
import ioredis from 'ioredis';
import ioredis5 from 'ioredis-5';
import * as redis from 'redis';
import * as redis5 from 'redis-5';
import { until } from './until.mjs';

const dq = withServer({ before, after, beforeEach });
const silent = { info() {}, warn() {}, error() {} };
const path = () => dq.url.slice('unix://'.length);
const HOUR = 3_600_000;

const CLIENTS = {
  'a URL': () => dq.url,
  'ioredis 6 with maps': () => new ioredis({ path: path(), replyMapping: 'resp3' }),
  'ioredis 5': () => new ioredis5(path()),
  'node-redis 6': () => redis.createClient({ socket: { path: path() } }).on('error', () => {}),
  'node-redis 6 with RESP2': () => redis.createClient({ socket: { path: path() }, RESP: 2 }).on('error', () => {}),
  'node-redis 5': () => redis5.createClient({ socket: { path: path() } }).on('error', () => {}),
};

let queue;
beforeEach(() => {
  queue = new Queue(dq.url, 'q');
});
afterEach(() => queue.close());

const isTimeout = (error) => error instanceof TimedOut;

for (const [name, connect] of Object.entries(CLIENTS)) {
  describe(name, () => {
    let client;
    let queue;
    beforeEach(() => {
      client = connect();
      queue = new Queue(client, 'q');
    });
    afterEach(async () => {
      await queue.close();
      if (typeof client !== 'string') (client.destroy ?? client.disconnect).call(client);
    });

    test('results', { timeout: 120_000 }, async () => {
      await queue.add(2, { id: 'twice', keep: HOUR });
      await queue.add(0, { id: 'nothing', keep: HOUR });
      await queue.add(-1, { id: 'dead', attempts: 1 });
      const worker = new Worker(
        queue,
        (job) => {
          if (job.data < 0) throw new RangeError('too small');
          return job.data === 0 ? undefined : { twice: 2 * job.data };
        },
        { logger: silent },
      );
      assert.equal(await worker.drain(), 3);
      assert.deepEqual(await queue.result('twice'), { twice: 4 });
      assert.deepEqual([await queue.result('nothing'), await queue.result('never there')], [null, null]);
      await assert.rejects(queue.result('dead'), { outcome: 'dead', reason: 'RangeError: too small', id: 'dead' });
      const kept = await queue.get('twice');
      assert.deepEqual([kept.state, String(kept.result), kept.keep], ['done', '{"twice":4}', HOUR]);
      assert.ok(kept.finished instanceof Date && kept.started instanceof Date);
      assert.deepEqual(await queue.wait('twice', 60_000), { twice: 4 });
      await assert.rejects(queue.wait('never there', 60_000), (error) => {
        assert.ok(error instanceof JobFailed);
        assert.deepEqual([error.outcome, error.reason], ['unknown', null]);
        return /KEEP/.test(error.message);
      });
    });

    test('waits that are added, given up, too long, and told', { timeout: 120_000 }, async () => {
      await queue.addMany(['a', 'b', 'c'].map((id) => ({ data: id, id, delay: HOUR, keep: HOUR })));
      const first = queue.wait('a', 60_000);
      const again = queue.wait('a');
      await until(async () => (await waiting()) === 1, 'one waits');
      const second = queue.wait('b', 60_000);
      await assert.rejects(queue.wait('c', 20), {
        name: 'TimedOut',
        message: "job 'c' did not end within 0.02 s",
        id: 'c',
        timeoutMs: 20,
      });
      const given = new AbortController();
      const third = queue.wait('c', null, { signal: given.signal });
      given.abort(new Error('enough'));
      await assert.rejects(third, /enough/);
      await assert.rejects(queue.wait('c', null, { signal: given.signal }), /enough/);
      await dq.clock.advance({ hours: 1 });
      const worker = new Worker(queue, (job) => job.data.toUpperCase(), { logger: silent });
      await worker.drain();
      assert.deepEqual(await Promise.all([first, again, second]), ['A', 'A', 'B']);
      assert.equal(await waiting(), 0);
    });

    test('a join is one call', { timeout: 120_000 }, async () => {
      const shards = new Queue(client, 'q', { shards: 5 });
      const parts = [1, 2, 3].map((data) => ({ data, kind: 'part' }));
      const last = await shards.join(parts, { then: { data: 'sum', onDead: 'run' } });
      await new Worker(shards, (job) => [job.data, ...job.results.map(({ value }) => value)], {
        logger: silent,
      }).drain();
      assert.deepEqual(await shards.result(last), ['sum', [1], [2], [3]]);
      assert.equal(await shards.join([{ data: 1 }], { then: { data: 1, id: 'late', delay: HOUR } }), 'late');
      assert.equal(await shards.join([{ data: 1 }], { then: { data: 1, id: 'late' } }), null);
      const before = await shards.len();
      const many = Array.from({ length: 1001 }, () => ({ data: 1 }));
      for (const [mistake, jobs, then] of [
        [/needs jobs/, [], {}],
        [/then takes neither/, [{ data: 1 }], { after: ['a'] }],
        [/in one shard/, Array.from({ length: 9 }, (_, n) => ({ data: 1, id: `${n}` })), {}],
        [/needs? AFTER|ONDEAD/, many, { onDead: 'run' }],
        [/joined by their group: give/, [...many, { data: 1, group: 'other' }], {}],
      ]) {
        await assert.rejects(shards.join(jobs, { then: { data: 2, ...then } }), mistake);
        if (jobs.length === 9) assert.equal(await shards.len(), before, 'nothing is added, in no shard');
      }
      await shards.close();
    });

    test('a refusal says what is refused', { timeout: 120_000 }, async () => {
      const zone = {
        code: 'ERR',
        said: 'TZ is not the name of a known time zone',
        id: 'c',
        argument: 'tz',
        value: 'Berln',
      };
      await assert.rejects(queue.cron('0 9 * * *', 1, { id: 'c', tz: 'Berln' }), {
        name: 'Refused',
        message: `job 'c' of queue 'q': the server refused tz='Berln': ERR ${zone.said}`,
        ...zone,
      });
      await queue.configure({ maxlen: 1 });
      const full = {
        name: 'QueueFull',
        code: 'MAXLEN',
        argument: null,
        message: /^job '.' of queue 'q': .* DQ.ADD: MAXLEN q/,
      };
      const jobs = [1, 2].map((data) => ({ data, id: `${data}`, delay: data }));
      await assert.rejects(queue.addMany(jobs), { ...full, id: '2' });
      await assert.rejects(queue.chain([{ data: 3, id: '3' }, { data: 4 }]), { ...full, id: '3' });
      const refusal = await queue.add(1, { id: 'x' }).catch((error) => error);
      assert.ok(refusal instanceof Refused && refusal.cause instanceof Error);
      assert.ok(!/node_modules/.test(refusal.stack), refusal.stack);
      await assert.rejects(queue.unblock('x'), { message: /^the server refused DQ.UNBLOCK: ERR / });
      const admin = new ioredis(path());
      await admin.set('q', 'no queue');
      await admin.quit();
      for (const call of [() => queue.len(), () => queue.nackMany({ a: '1' })]) {
        await assert.rejects(call(), {
          name: 'Refused',
          code: 'WRONGTYPE',
          id: null,
          message: /^queue 'q': the server ref/,
        });
      }
    });

    test('a request and its reply', { timeout: 120_000 }, async () => {
      const worker = new Worker(queue, (job) => job.data + 1, { logger: silent });
      worker.start();
      assert.equal(await queue.addAndWait(1, { timeout: 60_000 }), 2);
      await assert.rejects(queue.addAndWait(1, { timeout: 0, delay: HOUR }), isTimeout);
      const [one, two] = await Promise.all([queue.addAndWait(2, { id: 'x' }), queue.addAndWait(2, { id: 'x' })]);
      assert.deepEqual([one, two], [3, 3]);
      await worker.stop();
    });

    test('jobs after others', { timeout: 120_000 }, async () => {
      const seen = [];
      const worker = new Worker(queue, (job) => {
        seen.push([job.id, job.results.map(({ id, outcome, value }) => [id, outcome, value])]);
        return job.id;
      });
      const [one, two] = await queue.chain([{ data: 1 }, { data: 2, priority: 5 }]);
      await queue.addMany(
        [
          { data: 3, id: 'c', after: [two, 'd'], keep: HOUR },
          { data: 4, id: 'd' },
        ].reverse(),
      );
      const blocked = await queue.get('c');
      assert.deepEqual([blocked.state, blocked.after, blocked.due], ['blocked', [two, 'd'], null]);
      assert.deepEqual(
        (await queue.peek('blocked', { count: 5 })).map(({ at }) => at),
        [null, null],
      );
      await queue.add(5, { id: 'e', afterGroup: 'g' });
      assert.equal(await worker.drain(), 5);
      const results = new Map(seen);
      assert.deepEqual(results.get(two), [[one, 'done', one]]);
      assert.deepEqual(results.get('c'), [
        [two, 'done', two],
        ['d', 'done', 'd'],
      ]);
      assert.deepEqual([results.get(one), results.get('e')], [[], []]);
    });

    test('many jobs in few commands', { timeout: 120_000 }, async () => {
      const sent = [];
      const { run } = queue;
      queue.run = function (calls, key) {
        sent.push(...calls.map(([command]) => command));
        return run.call(this, calls, key);
      };
      const jobs = Array.from({ length: 2100 }, (_, n) => ({ data: n, id: `j${n}`, delay: HOUR, group: 'g' }));
      assert.deepEqual(
        await queue.addMany(jobs),
        jobs.map(({ id }) => id),
      );
      assert.deepEqual(sent.splice(0), ['DQ.MADD', 'DQ.MADD', 'DQ.MADD']);
      const large = Array.from({ length: 3 }, () => ({ data: 'x'.repeat(600_000), delay: HOUR }));
      assert.equal(new Set(await queue.addMany(large)).size, 3);
      assert.deepEqual(sent.splice(0), ['DQ.MADD', 'DQ.MADD', 'DQ.MADD']);
      assert.deepEqual(await queue.addMany([jobs[5], { data: 1, id: 'new', delay: HOUR, group: 'g' }]), [null, 'new']);
      assert.deepEqual(sent.splice(0), ['DQ.MADD']);
      await queue.addMany([jobs[5], { data: 1, id: 'other', priority: 1 }]);
      await queue.addMany(['a', 'b'].map((id) => ({ data: id, id, ifExists: 'next' })));
      assert.deepEqual(sent.splice(0), ['DQ.ADD', 'DQ.ADD', 'DQ.ADD', 'DQ.ADD']);
      await queue.configure({ maxlen: await queue.len() });
      await assert.rejects(queue.addMany([{ data: 1 }, { data: 2 }]), QueueFull);
      await assert.rejects(queue.chain([{ data: 1 }, { data: 2 }]), QueueFull);
    });

    test('commands by hand', { timeout: 120_000 }, async () => {
      await queue.configure({ donelen: 10, donettl: HOUR, donebytes: 1000 });
      await queue.addMany([
        { data: 1, id: 'a', cost: 5 },
        { data: 2, id: 'b' },
      ]);
      const [job] = await queue.pop();
      assert.deepEqual([job.id, job.results, [...job.steps]], ['a', [], []]);
      assert.ok((await queue.touch('a', job.token, { progress: '0.5 half', cost: 7 })) instanceof Date);
      assert.deepEqual([(await queue.get('a')).progress, (await queue.get('a')).cost], ['0.5 half', 5]);
      assert.equal(await queue.step('a', job.token, 'charge', { ch: 1 }), true);
      assert.equal(await queue.step('a', '1', 'charge', 2), false);
      assert.equal(await queue.nack('a', job.token, { mode: 'silent', awaits: 'signed', delay: HOUR }), 'delayed');
      assert.equal((await queue.get('a')).awaits, 'signed');
      assert.deepEqual(
        [await queue.signal('a', 'signed', 'x'), await queue.signal('a', 'signed'), await queue.signal('none', 's')],
        [true, false, null],
      );
      const [other] = await queue.pop({ id: 'a' });
      assert.deepEqual(
        [...other.steps].map(([step, value]) => [step, String(value)]),
        [
          ['charge', '{"ch":1}'],
          ['signed', '"x"'],
        ],
      );
      assert.equal(await queue.nack('a', other.token, { mode: 'silent', after: ['b'], onDead: 'run' }), 'blocked');
      const [b] = await queue.bpop(1000);
      const hears = queue.btouch(60_000, { b: b.token });
      await until(async () => (await waiting()) === 1, 'it waits');
      assert.equal(await queue.cancel('b'), true);
      assert.deepEqual(await hears, new Map([['b', null]]));
      const [last] = await queue.bpop(1000);
      assert.deepEqual([last.id, last.results.map(({ id, outcome }) => [id, outcome])], ['a', [['b', 'deleted']]]);
      assert.equal(await queue.ackMany({ a: last.token }, { a: [1] }), 1);
      assert.deepEqual([await queue.result('a'), await queue.len({ state: 'done' })], [[1], 1]);
      assert.deepEqual([await queue.cancel('none'), await queue.cancel('a')], [false, true]);
    });
  });
}

/** How many clients wait for ends. */
async function waiting() {
  const admin = new ioredis(path());
  const list = await admin.client('LIST');
  admin.disconnect();
  return list.split('\n').filter((line) => /cmd=dq\.(await|btouch)/.test(line) && /flags=[A-Za-z]*b/.test(line)).length;
}
describe('a join whose answer is lost', () => {
  beforeEach(() => queue.add(0, { delay: HOUR })); // a queue without jobs forgets how many were added
  const work = () => new Worker(queue, () => {}).drain();
  const join = (then = {}) => queue.join([{ data: 1 }], { then: { data: 2, ...then } });
  const UNKNOWN = /Error: the connection is lost: it is not known whether the jobs were added$/;
  /** Loses the next transaction. `arrives`: whether the server gets it. Returns how many jobs the call adds. */
  async function lossy(arrives, call, meanwhile = () => {}) {
    const before = (await queue.stats()).totals.added;
    queue.transact = async (...sent) => {
      delete queue.transact;
      if (arrives) await queue.transact(...sent);
      await meanwhile();
      throw new Error('the connection is lost');
    };
    await call();
    assert.ok(!Object.hasOwn(queue, 'transact'));
    return (await queue.stats()).totals.added - before;
  }

  test('jobs that ran and went are not added again', { timeout: 120_000 }, async () => {
    for (const then of [{ keep: 0 }, { keep: 1, id: 'last' }, { ttl: 1, delay: HOUR }]) {
      const gone = async () => {
        await work();
        await dq.clock.advance({ seconds: 1 });
        await until(async () => (await queue.len()) + (await queue.peek('done')).length === 1, 'all have gone');
      };
      assert.equal(await lossy(true, () => assert.rejects(join(then), UNKNOWN), gone), 2);
    }
  });

  for (const [how, error] of [
    ['refused', new Refused('never', { code: 'NOPERM' })],
    ['lost, too', new Error('lost')],
  ]) {
    test(`nobody knows, if the question is ${how}`, { timeout: 120_000 }, async () => {
      const refuse = () => {
        queue.run = () => Promise.reject(error);
      };
      const lost = () => assert.rejects(join(), UNKNOWN).finally(() => delete queue.run);
      assert.equal(await lossy(true, lost, refuse), 2);
    });
  }

  test('a chain, or a group and what is after it, is as a join', { timeout: 120_000 }, async () => {
    const adds = [
      (last) => queue.chain([{ data: 1 }, { data: 2, ...last }]),
      (last) => queue.addMany([{ data: 1, group: 'g' }, { data: 2, afterGroup: 'g', ...last }]), // prettier-ignore
    ];
    for (const add of adds) {
      for (const arrives of [false, true]) {
        const found = async () => assert.equal((await queue.get((await add({ keep: HOUR })).at(-1))).keep, HOUR);
        assert.equal(await lossy(arrives, found), 2);
        assert.equal(await work(), 2);
      }
      assert.equal(await lossy(true, () => assert.rejects(add(), UNKNOWN), work), 2);
    }
  });

  for (const code of ['LOADING', 'CLUSTERDOWN', 'MOVED', 'TRYAGAIN', 'READONLY']) {
    test(`${code} to the question says nothing of the transaction`, { timeout: 120_000 }, async () => {
      const refuse = async () => {
        await work();
        queue.run = async () => {
          delete queue.run;
          throw new Refused('not now', { code });
        };
      };
      assert.equal(await lossy(true, join, refuse), 2);
    });
  }

  test('a last job that only replaces is refused where there is none', { timeout: 120_000 }, async () => {
    assert.equal(await join({ ifExists: 'only-replace' }), null);
    assert.equal(await join({ ifExists: 'only-replace', id: 'last' }), null);
  });

  test('a full queue says how many were added', { timeout: 120_000 }, async () => {
    await queue.configure({ maxlen: 2 });
    await assert.rejects(join(), (error) => {
      assert.ok(error instanceof QueueFull);
      assert.match(error.message, /: MAXLEN queue is full; 1 of 2 jobs were added$/);
      return true;
    });
    assert.equal(await queue.len(), 2);
    await assert.rejects(join(), { name: 'QueueFull', message: /MAXLEN queue is full$/ });
  });
});

test('a transaction that is refused does not end others on its connection', { timeout: 120_000 }, async () => {
  await queue.chain([{ data: 1 }, { data: 2 }]);
  const [channel] = queue.channels.values();
  const line = await channel.open();
  await assert.rejects(queue.addMany([{ data: 1, after: ['nope'] }, { data: 2 }]));
  assert.equal(await channel.open(), line);
  channel.give(line, true);
  const newer = await channel.open();
  assert.notEqual(newer, line);
  channel.give(line, false); // as another of its transactions failed
  assert.equal(await channel.open(), newer);
});

test('a chain has null for a job that is refused', { timeout: 120_000 }, async () => {
  await queue.add(0, { id: 'a', delay: HOUR });
  const jobs = [{ data: 1, id: 'a' }, { data: 2, id: 'b' }, { data: 3 }, { data: 4, ifExists: 'only-replace' }];
  const ids = await queue.chain(jobs);
  assert.deepEqual([...ids.slice(0, 2), ids[3]], [null, 'b', null]);
  assert.equal((await queue.get(ids[2])).state, 'blocked');
});

test('what is wrong ends a wait', { timeout: 120_000 }, async () => {
  const admin = new ioredis(path());
  await admin.set('q', 'a text');
  await assert.rejects(queue.wait('a', 60_000), ConfigurationError);
  await admin.del('q');
  await queue.add(1, { id: 'a', delay: HOUR });
  const waits = queue.wait('a');
  await queue.close();
  await assert.rejects(waits, /the queue was closed/);
  assert.equal(await queue.cancel('a'), true); // it opens again
  await queue.close();
  await admin.quit();
});

test('a flow in a sharded queue is in one shard', { timeout: 120_000 }, async () => {
  const queue = new Queue(dq.url, 'q', { shards: 5 });
  const ids = await queue.chain(Array.from({ length: 6 }, (_, n) => ({ data: n })));
  const after = await queue.add(6, { after: [ids[5]] });
  const worker = new Worker(queue, (job) => job.queue);
  assert.equal(await worker.drain(), 7);
  assert.ok(after);
  const elsewhere = Array.from({ length: 20 }, (_, n) => ({ data: n, id: `x${n}`, after: n ? [`x${n - 1}`] : [] }));
  await assert.rejects(queue.addMany(elsewhere), /must be in the shard/);
  await queue.close();
});

test('after a job that is gone: the error names it, and says what to do', { timeout: 120_000 }, async () => {
  for (const shards of [undefined, 3]) {
    const queue = new Queue(dq.url, shards ? 's' : 'q', { shards });
    const here = await queue.add(1, { delay: HOUR });
    await assert.rejects(
      queue.add(2, { after: ['gone'] }),
      /^DqError: after names gone, which the queue does not hold/,
    );
    const both = [
      { data: 2, after: [here] },
      { data: 3, after: ['gone', 'too'] },
    ];
    if (!shards)
      await assert.rejects(queue.addMany(both), /after names gone, too, which .* in one call \(addMany, chain\)/);
    await queue.close();
  }
});

test('after many that are gone: ten are named, each once; none, if they cannot be looked up', async () => {
  const many = Array.from({ length: 25 }, (_, n) => `gone-${n}`);
  const named = /names (gone-\d, ){9}gone-9 and 15 more, which/;
  await assert.rejects(
    queue.addMany([
      { data: 1, after: many },
      { data: 2, after: many },
    ]),
    named,
  );
  const admin = new ioredis(dq.url.slice('unix://'.length));
  await admin.acl('SETUSER', 'blind', 'on', '>p', '+@all', '-dq.get', '~*', '&*');
  const client = new ioredis(dq.url.slice('unix://'.length), { username: 'blind', password: 'p' });
  const refused = /AFTER names a job that the queue does not hold$/;
  await assert.rejects(new Queue(client, 'q').add(2, { after: ['gone'] }), refused);
  await client.quit();
  await admin.quit();
});

test('a wait is ended by the id of its connection', { timeout: 120_000 }, async () => {
  const waiting = new ioredis(path());
  const id = await waiting.client('ID');
  const wait = waiting.call('DQ.BPOP', 'q', 60);
  while ((await queue.unblock(id, 2 ** 40)) === 0) await sleep(1);
  assert.equal(await wait, null);
  assert.equal(await queue.unblock(id), 0);
  await waiting.quit();
});

test('a job that spawns others in a sharded queue finds them', { timeout: 120_000 }, async () => {
  const queue = new Queue(dq.url, 'q', { shards: 5 });
  const worker = new Worker(queue, async (job) => {
    if (job.data !== 'parent') return job.id;
    const found = await job.spawn(Array.from({ length: 5 }, () => ({ data: 'child' })));
    return found.map(({ value }) => value);
  });
  await queue.add('parent', { id: 'p', keep: HOUR });
  await worker.drain();
  await worker.drain();
  const ids = await queue.result('p');
  assert.equal(ids.length, 5);
  assert.ok(ids.every((id, n) => id.startsWith(`p/1/${n}`)));
  await queue.close();
});

test('results in bytes', { timeout: 120_000 }, async () => {
  const queue = new Queue(dq.url, 'q', { codec: bytesCodec });
  await queue.add('x', { id: 'a', keep: HOUR });
  await new Worker(queue, () => Buffer.from([0, 255])).drain();
  assert.deepEqual(await queue.result('a'), Buffer.from([0, 255]));
  await queue.close();
});

test('a process that has waited ends by itself', { timeout: 120_000 }, async () => {
  const { spawnSync } = await import('node:child_process');
  const program = `
    import { Queue } from 'dq-redis';
    const queue = new Queue('${dq.url}', 'q');
    await queue.chain([{ data: 1 }, { data: 2 }]);
    await queue.wait('none', 60_000).catch((error) => console.log(error.outcome));
    await queue.add(1, { id: 'a', delay: 60_000 });
    await queue.wait('a', 50).catch((error) => console.log(error.name));
  `;
  const options = { encoding: 'utf8', timeout: 60_000 };
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], options);
  assert.deepEqual([status, stdout, stderr], [0, 'unknown\nTimedOut\n', '']);
});

// --- Health

const asked = (port) =>
  new Promise((resolve, reject) => {
    const answer = (response) => {
      let text = '';
      response.on('data', (some) => (text += some)).on('end', () => resolve([response.statusCode, text.trim()]));
    };
    get({ host: '127.0.0.1', port }, answer).on('error', reject);
  });

test('health by HTTP and by a file', { timeout: 120_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'dq-health-'));
  const file = join(folder, 'alive');
  const { createServer } = await import('node:net');
  const taken = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => taken.once('listening', resolve));
  const { port } = taken.address();
  const busy = new Worker(queue, () => {}, { health: `127.0.0.1:${port}`, logger: silent });
  await assert.rejects(busy.run(), /EADDRINUSE/);
  await new Promise((resolve) => taken.close(resolve));
  const one = new Worker(queue, () => {}, { health: `127.0.0.1:${port}`, logger: silent });
  const two = new Worker(queue, () => {}, { health: file, logger: silent });
  assert.equal(one.isHealthy, false);
  for (const worker of [one, two]) worker.start();
  await until(() => one.isHealthy && two.isHealthy, 'they are healthy');
  assert.deepEqual(await asked(port), [200, 'ok']);
  await until(() => existsSync(file), 'the file is there');
  const before = statSync(file).mtimeMs;
  await until(() => statSync(file).mtimeMs > before, 'it is touched');
  await Promise.all([one.stop(), two.stop()]);
  assert.deepEqual([one.isHealthy, two.isHealthy], [false, false]);
  await assert.rejects(asked(port), /ECONNREFUSED/);
  rmSync(folder, { recursive: true });
});

test('without a server a worker is not healthy, and says why', { timeout: 120_000 }, async () => {
  const { createServer } = await import('node:net');
  const free = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => free.once('listening', resolve));
  const { port } = free.address();
  await new Promise((resolve) => free.close(resolve));
  const options = { health: `127.0.0.1:${port}`, drain: 0, logger: silent };
  const worker = new Worker(new Queue('redis://127.0.0.1:1', 'q'), () => {}, options);
  worker.start();
  await until(async () => (await asked(port).catch(() => [0]))[1]?.includes('ECONNREFUSED'), 'it says why');
  assert.deepEqual([(await asked(port))[0], worker.isHealthy], [503, false]);
  await worker.stop();
});

test('a sharded queue has no groups to wait for; a chain keeps what its first job is after; no children are no wait', async () => {
  const queue = new Queue(dq.url, 'q', { shards: 5 });
  await assert.rejects(queue.add(1, { afterGroup: 'g' }), /afterGroup does not work in a sharded queue/);
  for (let n = 0; n < 5; n++) {
    await queue.add(0, { id: `a${n}` });
    const [first] = await queue.chain([{ data: 1, after: [`a${n}`] }, { data: 2 }]);
    assert.equal((await queue.get(first)).state, 'blocked');
  }
  const single = new Queue(dq.url, 's');
  await single.add(1, { id: 'j', keep: 60_000 });
  await new Worker(single, (job) => job.spawn([]).then((found) => found.length)).drain();
  assert.equal(await single.result('j'), 0);
  await Promise.all([queue.close(), single.close()]);
});
