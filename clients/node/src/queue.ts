// The queue: every command of dq as a method.

import { encoded } from './codec';
import { refused } from './fatal';
import { QueueGroup } from './group';
import { said } from './joboptions';
import { jobInfo, type JobInfo, type State } from './jobinfo';
import { sum } from './keys';
import { CONNECT_MS, SLACK_MS } from './limits';
import { takes } from './mistakes';
import * as words from './options';
import type { NackOptions, ScanOptions, Settings, TouchOptions } from './options';
import { maybeText } from './reading';
import { addUp, type Group, group, type Peeked, peeked, type ReservedJob, reserved, type Stats } from './records';
import { Rules } from './rules';
import { type Bytes, toBytes, toText } from './text';
import { type Duration, fromMs, instantToMs, maybeFromMs, toMs } from './times';
import { within } from './waiting';
import { reasons, type Explanation } from './explanation';
import { asMap, type Command, type Word } from './wire';

/** Tokens by id. */
export type Tokens = ReadonlyMap<string, string> | Readonly<Record<string, string>>;
/** Results by id. */
export type Results = ReadonlyMap<string, unknown> | Readonly<Record<string, unknown>>;

/** What a delivery includes. */
const EXTRAS = ['WITHDUE', 'WITHRESULTS', 'WITHSTEPS'];

/** A queue. Durations are milliseconds, instants are Dates. */
export class Queue<T = unknown> extends Rules<T> {
  /** What the server denies this user, if that was logged. */
  private readonly denied = new Set<string>();

  // --- Deliveries: a Worker sends these commands by itself

  /** Deletes jobs in any state; with `unreserved`, only those that no worker holds. Returns how many. */
  delete(ids: Bytes | readonly Bytes[], options: { unreserved?: boolean } = {}): Promise<number> {
    const only = words.flag('UNRESERVED', takes('delete', options, { unreserved: 1 }).unreserved);
    return this.counted(list(ids), (key, some) => ['DQ.DEL', key, ...only, 'IDS', some.length, ...some]);
  }

  /**
   * Takes ready jobs without waiting: the first `count` (of each shard), or the one with `id`. `ttr`: the length of their
   * leases. `noack`: they are done at once, and need no `ack`.
   */
  async pop(options: { count?: number; id?: Bytes; ttr?: Duration; noack?: boolean } = {}): Promise<ReservedJob[]> {
    const { id, ttr, noack } = takes('pop', options, { count: 1, id: 1, ttr: 1, noack: 1 });
    const rest = [...words.ms('TTR', ttr), ...words.flag('NOACK', noack), ...EXTRAS];
    if (id !== undefined) {
      const [row] = await this.run([['DQ.POP', this.key(id), 'ID', toBytes(id), ...rest]]);
      return row ? [this.reserved(this.key(id), row)] : [];
    }
    const replies = await this.each('DQ.POP', 'COUNT', options.count ?? 1, ...rest);
    return this.keys.flatMap((key, n) => (replies[n] as unknown[]).map((row) => this.reserved(key, row)));
  }

  /**
   * Waits up to `timeout` (0: no limit) for ready jobs, on a connection of its own, and takes up to `count`. Not for a sharded
   * queue in a cluster. `signal` ends the wait, which then throws the signal's reason.
   */
  async bpop(
    timeout: Duration,
    options: { count?: number; ttr?: Duration; noack?: boolean; signal?: AbortSignal } = {},
  ): Promise<ReservedJob[]> {
    const names = { count: 1, ttr: 1, noack: 1, signal: 1 } as const;
    const { count: most = 1, ttr, noack, signal } = takes('bpop', options, names);
    const rest = ['COUNT', most, ...words.ms('TTR', ttr), ...words.flag('NOACK', noack), ...EXTRAS];
    const keys = [...this.keys, String(toMs(timeout) / 1000)];
    const reply = await this.blocking(['DQ.BPOP', ...keys, ...rest], timeout, signal);
    if (reply === null) return [];
    const [key, rows] = reply as [Buffer, unknown[]];
    return rows.map((row) => this.reserved(key, row));
  }

  /**
   * Renews the leases of these jobs, and waits up to `timeout`, on a connection of its own, unless a job is lost before.
   * Returns when the leases end, null for a lost one. For the jobs of one shard only.
   */
  async btouch(
    timeout: Duration,
    tokens: Tokens,
    options: { ttr?: Duration; signal?: AbortSignal } = {},
  ): Promise<Map<string, Date | null>> {
    const { ttr, signal } = takes('btouch', options, { ttr: 1, signal: 1 });
    const [first, ...others] = this.pairs(tokens);
    if (!first || others.length > 0) throw new TypeError('btouch needs the tokens of jobs of one shard');
    const [key, ids, pairs] = first;
    const rest = ['IDS', ids.length, ...pairs, ...words.ms('TTR', ttr)];
    const reply = await this.blocking(['DQ.BTOUCH', key, String(toMs(timeout) / 1000), ...rest], timeout, signal);
    return new Map(ids.map((id, n) => [toText(id), maybeFromMs((reply as unknown[])[n])]));
  }

  /** Sends a command that waits, on a connection of its own, and returns the reply. */
  private async blocking(command: Command, timeout: Duration, signal?: AbortSignal): Promise<unknown> {
    signal?.throwIfAborted();
    const line = await (await this.driver()).connect(command[1] as Buffer, CONNECT_MS);
    const end = () => line.close();
    signal?.addEventListener('abort', end);
    try {
      signal?.throwIfAborted(); // it may have aborted while this connected
      const [answer] = line.ask([command]);
      const longest = timeout > 0 ? timeout + SLACK_MS : Infinity;
      const reply = await within(answer!, longest, command[0], end);
      if (reply instanceof Error) throw refused(reply, command);
      return reply;
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener('abort', end);
      line.close();
    }
  }

  private reserved(key: Buffer, row: unknown): ReservedJob {
    return reserved(key, row as any[], this.codec);
  }

  /**
   * The job is done, with a result unless that is null or undefined. Returns false if the token is not current: the job is
   * gone, or another worker has it.
   */
  async ack(id: Bytes, token: string, result?: unknown): Promise<boolean> {
    return (await this.ackMany(new Map([[toText(toBytes(id)), token]]), { [toText(toBytes(id))]: result })) > 0;
  }

  /** `ack` for many jobs: `tokens` and `results` are by id. Returns how many were done. */
  async ackMany(tokens: Tokens, results: Results = {}): Promise<number> {
    const known = results instanceof Map ? results : new Map(Object.entries(results));
    const ofId = (id: Buffer) => encoded(this.codec, known.get(toText(id)), 'result');
    const calls = this.pairs(tokens).flatMap(([key, ids, pairs]) => {
      const all = ids.map((id, n) => [id, pairs[2 * n + 1]!, ofId(id)] as const);
      const [bare, given] = [all.filter((one) => one[2].length === 0), all.filter((one) => one[2].length > 0)];
      const call = (word: string, jobs: Word[][]): Command[] =>
        jobs.length ? [['DQ.ACK', key, word, 'IDS', jobs.length, ...jobs.flat()]] : [];
      return [
        ...call(
          'WITHTOKENS',
          bare.map(([id, token]) => [id, token]),
        ),
        ...call(
          'RESULTS',
          given.map((each) => [...each]),
        ),
      ];
    });
    return sum((await this.run(calls)).flat());
  }

  /** Gives a job back. Returns its new state, or null if it is not reserved with that token. */
  async nack(id: Bytes, token?: string | null, options: NackOptions = {}): Promise<string | null> {
    return maybeText(
      await this.one(
        id,
        'DQ.NACK',
        ...words.value('TOKEN', token),
        ...words.ofNack(takes('nack', options, words.NACK)),
      ),
    );
  }

  /** `nack` for many jobs: `tokens` are by id. Returns the new state of each. */
  nackMany(tokens: Tokens, options: NackOptions = {}): Promise<Map<string, string | null>> {
    return this.many('DQ.NACK', tokens, words.ofNack(takes('nackMany', options, words.NACK)), maybeText);
  }

  /** Renews the lease from now. Returns when it ends, or null if the job is not reserved with that token. */
  async touch(id: Bytes, token?: string | null, options: TouchOptions = {}): Promise<Date | null> {
    const rest = words.ofTouch(takes('touch', options, words.TOUCH));
    return maybeFromMs(await this.one(id, 'DQ.TOUCH', ...words.value('TOKEN', token), ...rest));
  }

  /** `touch` for many jobs: `tokens` are by id. Returns when each lease ends. */
  touchMany(tokens: Tokens, options: { ttr?: Duration } = {}): Promise<Map<string, Date | null>> {
    const { ttr } = takes('touchMany', options, { ttr: 1 });
    return this.many('DQ.TOUCH', tokens, words.ms('TTR', ttr), maybeFromMs);
  }

  private async many<R>(command: string, tokens: Tokens, options: Word[], read: (reply: unknown) => R) {
    const groups = this.pairs(tokens);
    const calls = groups.map(([key, ids, pairs]): Command => [command, key, 'IDS', ids.length, ...pairs, ...options]);
    const replies = (await this.run(calls)) as unknown[][];
    return new Map<string, R>(groups.flatMap(([, ids], n) => ids.map((id, at) => [toText(id), read(replies[n]![at])])));
  }

  private pairs(tokens: Tokens): (readonly [key: Buffer, ids: Buffer[], pairs: Word[]])[] {
    const known = tokens instanceof Map ? tokens : new Map(Object.entries(tokens));
    return this.byKey(known.keys()).map(
      ([key, ids]) => [key, ids, ids.flatMap((id) => [id, known.get(toText(id))!])] as const,
    );
  }

  /** Changes the due time, the priority or both of delayed or ready jobs. Returns how many it found. */
  async reschedule(
    ids: Bytes | readonly Bytes[],
    options: { delay?: Duration; at?: Date; priority?: number },
  ): Promise<number> {
    const { delay, at, priority } = takes('reschedule', options ?? {}, { delay: 1, at: 1, priority: 1 });
    const rest = [...words.due(delay, at), ...said({ priority })];
    if (rest.length === 0) {
      throw new TypeError('reschedule needs a new delay, at or priority, such as { delay: 60_000 }');
    }
    return this.counted(list(ids), (key, some) => ['DQ.RESCHEDULE', key, ...rest, 'IDS', some.length, ...some]);
  }

  /** Makes jobs ready that are dead or done, or blocked and should wait no longer. Returns how many. */
  kick(ids: Bytes | readonly Bytes[]): Promise<number> {
    return this.counted(list(ids), (key, some) => ['DQ.KICK', key, 'IDS', some.length, ...some]);
  }

  /** Makes the jobs ready again that have been dead longest, up to `most` of each shard. Returns how many. */
  async kickOldest(most: number): Promise<number> {
    return sum(await this.each('DQ.KICK', 'COUNT', most));
  }

  // --- Queries

  /**
   * Everything about one job; null if there is no such job. With `prefix`, only so many bytes of the payload, the next
   * one, the result, and values of results and steps.
   */
  async get(id: Bytes, options: { prefix?: number } = {}): Promise<JobInfo | null> {
    const { prefix } = takes('get', options, { prefix: 1 });
    return jobInfo(asMap(await this.one(id, 'DQ.GET', ...words.amount('PREFIX', prefix))), this.codec);
  }

  /**
   * The first jobs of a state, in that state's order (of each shard). With `prefix`, only so many bytes of each payload.
   * A shard ends its answer after 16 MB of payloads: fewer than `count` are not always all, unless `prefix` is 0.
   */
  async peek(
    state: State,
    options: { count?: number; since?: Date; until?: Date; prefix?: number } = {},
  ): Promise<Peeked[]> {
    const {
      count: most = 1,
      since,
      until,
      prefix,
    } = takes('peek', options, { count: 1, since: 1, until: 1, prefix: 1 });
    const rest = [...words.instant('FROM', since), ...words.instant('TO', until), ...words.amount('PREFIX', prefix)];
    const replies = (await this.each('DQ.PEEK', state, ...rest, 'COUNT', most)) as any[][][];
    return replies.flat().map(peeked);
  }

  /** One step through the ids: the next cursor (`'0'` at the end) and some ids. `ids` takes all steps. */
  async scan(cursor = '0', options: ScanOptions & { shard?: number } = {}): Promise<[cursor: string, ids: string[]]> {
    const { shard = 0, ...rest } = takes('scan', options, { shard: 1, ...words.SCAN });
    const [reply] = (await this.run([['DQ.SCAN', this.keys[shard]!, cursor, ...words.ofScan(rest)]])) as [
      [Buffer, Buffer[]],
    ];
    return [String(reply[0]), reply[1].map(toText)];
  }

  /** Iterates over all ids, step by step. */
  async *ids(options: ScanOptions = {}): AsyncGenerator<string, void, void> {
    takes('ids', options, words.SCAN);
    for (let shard = 0; shard < this.keys.length; shard++) {
      let cursor = '0';
      do {
        const [next, some] = await this.scan(cursor, { count: 1000, ...options, shard });
        yield* some;
        cursor = next;
      } while (cursor !== '0');
    }
  }

  /** How many jobs will be due in each of `buckets` equal parts of the time from `since` to `until`. */
  async forecast(since: Date, until: Date, buckets: number): Promise<number[]> {
    const span = ['FROM', instantToMs(since), 'TO', instantToMs(until), 'BUCKETS', buckets];
    const replies = (await this.each('DQ.FORECAST', ...span)) as unknown[][];
    return Array.from({ length: buckets }, (_, n) => sum(replies.map((parts) => parts[n])));
  }

  /** How many jobs there are: in one state, of one group, or blocked, delayed, ready and reserved together. */
  async len(options: { state?: State; group?: string } = {}): Promise<number> {
    const { state, group } = takes('len', options, { state: 1, group: 1 });
    return sum(await this.each('DQ.LEN', ...(state ? [state] : words.value('GROUP', group))));
  }

  /** The queue's figures, added up over its shards; null if the queue does not exist. */
  async stats(): Promise<Stats | null> {
    return addUp((await this.each('DQ.STATS')).map(asMap));
  }

  /**
   * Why the queue delivers nothing, or why it does not deliver this job: all that holds, in the server's order; null if
   * there is no such queue or job. Of a sharded queue, the numbers of its shards added up.
   */
  async explain(id?: Bytes): Promise<Explanation[] | null> {
    return reasons(id === undefined ? await this.each('DQ.EXPLAIN') : [await this.one(id, 'DQ.EXPLAIN')]);
  }

  /** When a recurring job will be due next; empty for another job, null if there is no such job. */
  async next(id: Bytes, most = 1): Promise<Date[] | null> {
    const reply = await this.one(id, 'DQ.NEXT', 'COUNT', most);
    return reply === null ? null : (reply as unknown[]).map(fromMs);
  }

  /**
   * One step through the groups that hold jobs: the next cursor (`'0'` at the end) and some groups. `hasSettings`: instead
   * those with settings of their own, whether they hold jobs or not.
   */
  async groups(
    cursor = '0',
    options: { shard?: number; match?: string; count?: number; hasSettings?: boolean } = {},
  ): Promise<[cursor: string, groups: Group[]]> {
    const names = { match: 1, count: 1, shard: 1, hasSettings: 1 } as const;
    const { shard = 0, match, hasSettings } = takes('groups', options, names);
    const rest = [
      ...words.value('MATCH', match),
      ...words.value('COUNT', options.count),
      ...words.flag('SET', hasSettings),
    ];
    const [reply] = (await this.run([['DQ.GROUPS', this.keys[shard]!, cursor, ...rest]])) as [[Buffer, any[][]]];
    return [String(reply[0]), reply[1].map(group)];
  }

  /**
   * Ends waits (BPOP, AWAIT, BTOUCH) of connections of this user, by their CLIENT IDs. Returns how many. Safe at any
   * moment, unlike CLIENT UNBLOCK. In a cluster it goes to the node of the queue's first key.
   */
  async unblock(...clientIds: number[]): Promise<number> {
    return Number((await this.run([['DQ.UNBLOCK', ...clientIds]], this.keys[0]!))[0]);
  }

  // --- Settings

  /** One group of this queue, such as a tenant: `queue.group('acme').set({ weight: 3, max: 5, rate: [100, 60_000] })`. */
  group(name: Bytes): QueueGroup {
    const off = (what: string, why: string) => {
      if (!this.denied.has(what))
        this.guard.log.warn(`dq: ${this}: the server refuses ${what}: nothing is changed (${why})`);
      this.denied.add(what);
    };
    return new QueueGroup(name, { each: (command, ...rest) => this.each(command, ...rest), off });
  }

  /** Changes the settings that are given, on each shard. */
  async configure(settings: Settings): Promise<void> {
    await this.each('DQ.CFGSET', ...words.ofSettings(takes('configure', settings, words.SETTINGS)));
  }

  /** All settings (of the first shard) by name, durations in milliseconds; null if the queue does not exist. */
  async settings(): Promise<Record<string, unknown> | null> {
    const settings = asMap((await this.run([['DQ.CFGGET', this.keys[0]!]]))[0]);
    return settings && Object.fromEntries(settings);
  }

  /** Stops deliveries for `duration`, or until `resume`. */
  async pause(duration?: Duration): Promise<void> {
    await this.each('DQ.PAUSE', ...(duration === undefined ? [] : [toMs(duration)]));
  }

  /** Ends a pause. */
  async resume(): Promise<void> {
    await this.each('DQ.RESUME');
  }

  /** Deletes all jobs of a state, or `all`. Returns how many. */
  async purge(state: State | 'all'): Promise<number> {
    return sum(await this.each('DQ.PURGE', state));
  }
}

function list(ids: Bytes | readonly Bytes[]): readonly Bytes[] {
  return Array.isArray(ids) ? ids : [ids as Bytes];
}
