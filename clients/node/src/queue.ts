// A queue: every command of dq as a method.

import { type Codec, jsonCodec, writeEnvelope } from './codec';
import type { Client } from './driver';
import { withoutModule } from './fatal';
import { careful, Guard } from './guard';
import { count } from './handler';
import { consoleLogger, type Hooks, type Logger } from './hooks';
import { Keys, newId, sum } from './keys';
import { CONNECT_MS, SLACK_MS } from './limits';
import { ruled, takes } from './mistakes';
import * as words from './options';
import type { AddOptions, CronOptions, EveryOptions, JobOptions, NackOptions, Settings } from './options';
import {
  addUp,
  type Group,
  group,
  jobInfo,
  type JobInfo,
  type Peeked,
  peeked,
  type Reserved,
  reserved,
} from './records';
import type { State, Stats } from './records';
import { type Bytes, toBytes, toText } from './text';
import { type Duration, fromMs, instantToMs, maybeFromMs, toMs } from './times';
import { within } from './waiting';
import { asMap, type Command, type Word } from './wire';

export interface QueueOptions<T = any> {
  /** The queue is spread over so many keys, `name:{0}` to `name:{n-1}`, by the CRC-32 of the id. */
  shards?: number;
  /** What makes bytes of data; JSON by default. */
  codec?: Codec<T>;
  hooks?: readonly Hooks[];
  /** Is told of hooks that fail. */
  logger?: Logger;
}

/** Ids and their tokens. */
export type Tokens = ReadonlyMap<string, string> | Readonly<Record<string, string>>;

const maybeId = (reply: unknown) => (reply === null ? null : toText(reply as Buffer));
const maybeText = (reply: unknown) => (reply === null ? null : String(reply));

/** A queue. Durations are milliseconds, instants are Dates. */
export class Queue<T = any> extends Keys {
  readonly codec: Codec<T>;
  readonly hooks: readonly Hooks[];
  private readonly guard: Guard;

  /** client: a URL (then ioredis is used where it is installed, else node-redis), or a client of ioredis or node-redis. */
  constructor(client: Client, name: string, options: QueueOptions<T> = {}) {
    takes('a queue', options, { shards: 1, codec: 1, hooks: 1, logger: 1 });
    super(client, name, count(options.shards ?? 0, 'shards'));
    this.codec = options.codec ?? jsonCodec;
    this.hooks = [...(options.hooks ?? [])];
    this.guard = new Guard(this.hooks, careful(options.logger ?? consoleLogger));
  }

  // --- Adding

  private async adding(data: T, id: Bytes, options: JobOptions, rest: Word[]): Promise<Command> {
    const { kind = null } = options;
    const headers = this.hooks.length > 0 ? await this.guard.adding(this.name, options.headers) : options.headers;
    const isEnvelope = kind !== null || Object.keys(headers ?? {}).length > 0;
    const payload = isEnvelope ? writeEnvelope(data, kind ?? undefined, headers) : this.codec.encode(data);
    return ['DQ.ADD', this.key(id), toBytes(id), toBytes(payload, 'a payload'), ...rest];
  }

  private async addAll(jobs: readonly (readonly [data: T, options: AddOptions])[]): Promise<(string | null)[]> {
    // Ids of our own, as clients may send a command again whose answer was lost: then it was the first that added.
    const ids = jobs.map(([, { id }]) => id ?? newId());
    const calls = jobs.map(([data, options], n) => {
      const due = words.due(options.delay, options.at);
      return this.adding(data, ids[n]!, options, [
        ...words.ofJob(options),
        ...words.condition(options.ifExists),
        ...due,
      ]);
    });
    const replies = await this.run(await Promise.all(calls));
    return replies.map((reply, n) => {
      const { id = null, ifExists = null } = jobs[n]![1];
      return reply === null && id === null && ifExists === null ? (ids[n] as string) : maybeId(reply);
    });
  }

  /**
   * Adds a job, due now, after `delay` or `at` an instant. Returns its id, or null where it was refused.
   *
   * data: bytes, or what the codec makes bytes of (JSON unless the queue says otherwise).
   */
  async add(data: T, options: AddOptions = {}): Promise<string | null> {
    return (await this.addAll([[data, takes('add', options, words.ADD)]]))[0]!;
  }

  /** Adds many jobs in one round trip. */
  async addMany(jobs: readonly ({ data: T } & AddOptions)[]): Promise<(string | null)[]> {
    const taken = jobs.map((job) => {
      const { data, ...options } = takes('a job of addMany', job, { data: 1, ...words.ADD });
      return [data, options] as const;
    });
    return this.addAll(taken);
  }

  /** A job that comes every `interval`. Say it again at each start: the same rule goes on as it was. */
  async every(interval: Duration, data: T, options: EveryOptions): Promise<string | null> {
    takes('every', ruled('every', options), words.EVERY);
    const rule = ['EVERY', toMs(interval, 'interval'), ...words.ofRule(options), ...words.ofJob(options), 'REPLACE'];
    const call = await this.adding(data, options.id, options, [...rule, ...words.due(null, options.first)]);
    return maybeId((await this.run([call]))[0]);
  }

  /** A job that comes by a cron expression. See `every`. */
  async cron(expression: string, data: T, options: CronOptions): Promise<string | null> {
    takes('cron', ruled('cron', options), words.CRON);
    const rule = ['CRON', expression, ...words.value('TZ', options.tz), ...words.ofRule(options)];
    const call = await this.adding(data, options.id, options, [...rule, ...words.ofJob(options), 'REPLACE']);
    return maybeId((await this.run([call]))[0]);
  }

  // --- A job's life, by hand: a Worker does all of this

  /** Removes jobs, in whatever state; with `unreserved`, not those at which a worker is. Returns how many went. */
  delete(ids: Bytes | readonly Bytes[], options: { unreserved?: boolean } = {}): Promise<number> {
    const only = words.flag('UNRESERVED', takes('delete', options, { unreserved: 1 }).unreserved);
    return this.counted(list(ids), (key, some) => ['DQ.DEL', key, ...only, ...some]);
  }

  /** Takes ready jobs, the first `count` (of each shard) or that one, without waiting. */
  async pop(options: { count?: number; id?: Bytes; ttr?: Duration; noack?: boolean } = {}): Promise<Reserved[]> {
    const { id, ttr, noack } = takes('pop', options, { count: 1, id: 1, ttr: 1, noack: 1 });
    const rest = [...words.ms('TTR', ttr), ...words.flag('NOACK', noack), 'WITHDUE'];
    if (id !== undefined) {
      const [row] = await this.run([['DQ.POP', this.key(id), 'ID', toBytes(id), ...rest]]);
      return row ? [reserved(this.key(id), row as any[])] : [];
    }
    const replies = await this.each('DQ.POP', 'COUNT', options.count ?? 1, ...rest);
    return this.keys.flatMap((key, n) => (replies[n] as any[][]).map((row) => reserved(key, row)));
  }

  /**
   * Waits for ready jobs for up to `timeout` (0: without end), on a connection of its own, and takes up to `count`. Not of a
   * sharded queue in a cluster. `signal` ends the wait: it throws the signal's reason.
   */
  async bpop(
    timeout: Duration,
    options: { count?: number; ttr?: Duration; noack?: boolean; signal?: AbortSignal } = {},
  ): Promise<Reserved[]> {
    const names = { count: 1, ttr: 1, noack: 1, signal: 1 } as const;
    const { count: most = 1, ttr, noack, signal } = takes('bpop', options, names);
    signal?.throwIfAborted();
    const rest = ['COUNT', most, ...words.ms('TTR', ttr), ...words.flag('NOACK', noack), 'WITHDUE'];
    const line = await (await this.driver()).connect(this.keys[0]!, CONNECT_MS);
    const end = () => line.close();
    signal?.addEventListener('abort', end);
    try {
      signal?.throwIfAborted(); // while it connected
      const [reply] = line.ask([['DQ.BPOP', ...this.keys, String(toMs(timeout) / 1000), ...rest]]);
      const longest = timeout > 0 ? timeout + SLACK_MS : Infinity;
      const found = (await within(reply!, longest, 'DQ.BPOP', end)) as [Buffer, any[][]] | null;
      if (found instanceof Error) throw withoutModule(found) ?? found;
      return found ? found[1].map((row) => reserved(found[0], row)) : [];
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener('abort', end);
      line.close();
    }
  }

  /** The job is done. False where the token is no longer its current one: somebody else has it, or it is gone. */
  async ack(id: Bytes, token: string): Promise<boolean> {
    return Number((await this.run([['DQ.ACK', this.key(id), 'WITHTOKENS', toBytes(id), token]]))[0]) > 0;
  }

  /** `ack` for many. Returns how many were done: those whose tokens were current. */
  async ackMany(tokens: Tokens): Promise<number> {
    return sum(
      await this.run(this.pairs(tokens).map(([key, , pairs]): Command => ['DQ.ACK', key, 'WITHTOKENS', ...pairs])),
    );
  }

  /** Gives a job back. Returns its state. */
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

  /** `nack` for many. */
  nackMany(tokens: Tokens, options: NackOptions = {}): Promise<Map<string, string | null>> {
    return this.many('DQ.NACK', tokens, words.ofNack(takes('nackMany', options, words.NACK)), maybeText);
  }

  /** A fresh lease from now. Returns its end, or null where the job is not reserved with that token. */
  async touch(id: Bytes, token?: string | null, options: { ttr?: Duration } = {}): Promise<Date | null> {
    const { ttr } = takes('touch', options, { ttr: 1 });
    return maybeFromMs(await this.one(id, 'DQ.TOUCH', ...words.value('TOKEN', token), ...words.ms('TTR', ttr)));
  }

  /** `touch` for many. */
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

  /** Gives delayed or ready jobs another due time, another priority, or both. Returns how many it found. */
  async reschedule(
    ids: Bytes | readonly Bytes[],
    options: { delay?: Duration; at?: Date; priority?: number },
  ): Promise<number> {
    const { delay, at, priority } = takes('reschedule', options ?? {}, { delay: 1, at: 1, priority: 1 });
    const rest = [...words.due(delay, at), ...words.value('PRIORITY', priority)];
    if (rest.length === 0) {
      throw new TypeError('reschedule needs a new delay, at or priority, such as { delay: 60_000 }');
    }
    return this.counted(list(ids), (key, some) => ['DQ.RESCHEDULE', key, ...rest, ...some]);
  }

  /** Makes dead jobs ready again. Returns how many. */
  kick(ids: Bytes | readonly Bytes[]): Promise<number> {
    return this.counted(list(ids), (key, some) => ['DQ.KICK', key, 'IDS', some.length, ...some]);
  }

  /** Makes the longest dead jobs ready again (of each shard). Returns how many. */
  async kickOldest(most: number): Promise<number> {
    return sum(await this.each('DQ.KICK', 'COUNT', most));
  }

  // --- Looking

  /** All about one job. */
  async get(id: Bytes): Promise<JobInfo | null> {
    return jobInfo(asMap(await this.one(id, 'DQ.GET')));
  }

  /** The first jobs of a state, in that state's order (of each shard). */
  async peek(state: State, options: { count?: number; since?: Date; until?: Date } = {}): Promise<Peeked[]> {
    const { count: most = 1, since, until } = takes('peek', options, { count: 1, since: 1, until: 1 });
    const span = [...words.instant('FROM', since), ...words.instant('TO', until)];
    const replies = (await this.each('DQ.PEEK', state, ...span, 'COUNT', most)) as any[][][];
    return replies.flat().map(peeked);
  }

  /** One step through the ids: the next cursor (`'0'` at the end) and some ids. `ids` takes all steps. */
  async scan(
    cursor = '0',
    options: { shard?: number; state?: State; match?: string; count?: number } = {},
  ): Promise<[cursor: string, ids: string[]]> {
    const { shard = 0, state, match } = takes('scan', options, { state: 1, match: 1, count: 1, shard: 1 });
    const rest = [
      ...words.value('STATE', state),
      ...words.value('MATCH', match),
      ...words.value('COUNT', options.count),
    ];
    const [reply] = (await this.run([['DQ.SCAN', this.keys[shard]!, cursor, ...rest]])) as [[Buffer, Buffer[]]];
    return [String(reply[0]), reply[1].map(toText)];
  }

  /** All ids, step by step. */
  async *ids(options: { state?: State; match?: string; count?: number } = {}): AsyncGenerator<string, void, void> {
    takes('ids', options, { state: 1, match: 1, count: 1 });
    for (let shard = 0; shard < this.keys.length; shard++) {
      let cursor = '0';
      do {
        const [next, some] = await this.scan(cursor, { count: 1000, ...options, shard });
        yield* some;
        cursor = next;
      } while (cursor !== '0');
    }
  }

  /** How many jobs will be due in each of `buckets` equal parts of that time. */
  async forecast(since: Date, until: Date, buckets: number): Promise<number[]> {
    const span = ['FROM', instantToMs(since), 'TO', instantToMs(until), 'BUCKETS', buckets];
    const replies = (await this.each('DQ.FORECAST', ...span)) as unknown[][];
    return Array.from({ length: buckets }, (_, n) => sum(replies.map((parts) => parts[n])));
  }

  /** How many jobs: delayed, ready and reserved together, or in one state, or of one group. */
  async len(options: { state?: State; group?: string } = {}): Promise<number> {
    const { state, group } = takes('len', options, { state: 1, group: 1 });
    return sum(await this.each('DQ.LEN', ...(state ? [state] : words.value('GROUP', group))));
  }

  /** The queue's figures, added up over its shards; null where there is no queue. */
  async stats(): Promise<Stats | null> {
    return addUp((await this.each('DQ.STATS')).map(asMap));
  }

  /** When a recurring job will be due; empty for another job, null where there is none. */
  async next(id: Bytes, most = 1): Promise<Date[] | null> {
    const reply = await this.one(id, 'DQ.NEXT', 'COUNT', most);
    return reply === null ? null : (reply as unknown[]).map(fromMs);
  }

  /** One step through the groups that hold jobs. */
  async groups(
    cursor = '0',
    options: { shard?: number; match?: string; count?: number } = {},
  ): Promise<[cursor: string, groups: Group[]]> {
    const { shard = 0, match } = takes('groups', options, { match: 1, count: 1, shard: 1 });
    const rest = [...words.value('MATCH', match), ...words.value('COUNT', options.count)];
    const [reply] = (await this.run([['DQ.GROUPS', this.keys[shard]!, cursor, ...rest]])) as [[Buffer, any[][]]];
    return [String(reply[0]), reply[1].map(group)];
  }

  // --- Settings

  /** Sets the settings that are named, on each shard. */
  async cfgset(settings: Settings): Promise<void> {
    await this.each('DQ.CFGSET', ...words.ofSettings(takes('cfgset', settings, words.SETTINGS)));
  }

  /** All settings (of the first shard) by name, durations in milliseconds; null where there is no queue. */
  async cfgget(): Promise<Record<string, unknown> | null> {
    const settings = asMap((await this.run([['DQ.CFGGET', this.keys[0]!]]))[0]);
    return settings && Object.fromEntries(settings);
  }

  /** Delivers nothing, for so long or until `resume`. */
  async pause(duration?: Duration): Promise<void> {
    await this.each('DQ.PAUSE', ...(duration === undefined ? [] : [toMs(duration)]));
  }

  /** Ends a pause. */
  async resume(): Promise<void> {
    await this.each('DQ.RESUME');
  }

  /** Removes all jobs of a state, or `all`. Returns how many. */
  async purge(state: State | 'all'): Promise<number> {
    return sum(await this.each('DQ.PURGE', state));
  }
}

function list(ids: Bytes | readonly Bytes[]): readonly Bytes[] {
  return Array.isArray(ids) ? ids : [ids as Bytes];
}
