// A queue: every command of dq as a method.

import { encoded } from './codec';
import { withoutModule } from './fatal';
import { jobInfo, type JobInfo, type State } from './jobinfo';
import { sum } from './keys';
import { CONNECT_MS, SLACK_MS } from './limits';
import { takes } from './mistakes';
import * as words from './options';
import type { NackOptions, Settings, TouchOptions } from './options';
import { Outcomes } from './outcomes';
import { maybeText } from './reading';
import { addUp, type Group, group, type Peeked, peeked, type ReservedJob, reserved, type Stats } from './records';
import { type Bytes, toBytes, toText } from './text';
import { type Duration, fromMs, instantToMs, maybeFromMs, toMs } from './times';
import { within } from './waiting';
import { asMap, type Command, type Word } from './wire';

/** Ids and their tokens. */
export type Tokens = ReadonlyMap<string, string> | Readonly<Record<string, string>>;
/** Results by id. */
export type Results = ReadonlyMap<string, unknown> | Readonly<Record<string, unknown>>;

/** Which ids; `match` and `payload` are patterns. */
export interface ScanOptions {
  state?: State;
  match?: string;
  group?: string;
  payload?: string;
  /** How many to look at in one step. */
  count?: number;
}

const SCAN: Record<keyof ScanOptions, 1> = { state: 1, match: 1, group: 1, payload: 1, count: 1 };

/** What a delivery brings along. */
const EXTRAS = ['WITHDUE', 'WITHRESULTS', 'WITHSTEPS'];

/** A queue. Durations are milliseconds, instants are Dates. */
export class Queue<T = any> extends Outcomes<T> {
  // --- A job's life, by hand: a Worker does all of this

  /** Removes jobs, in whatever state; with `unreserved`, not those at which a worker is. Returns how many went. */
  delete(ids: Bytes | readonly Bytes[], options: { unreserved?: boolean } = {}): Promise<number> {
    const only = words.flag('UNRESERVED', takes('delete', options, { unreserved: 1 }).unreserved);
    return this.counted(list(ids), (key, some) => ['DQ.DEL', key, ...only, ...some]);
  }

  /** Takes ready jobs, the first `count` (of each shard) or that one, without waiting. */
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
   * Waits for ready jobs for up to `timeout` (0: without end), on a connection of its own, and takes up to `count`. Not of a
   * sharded queue in a cluster. `signal` ends the wait: it throws the signal's reason.
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
   * Renews the leases of those jobs, and waits while all of them are held, for up to `timeout`, on a connection of its own:
   * their leases' ends, null where one was lost. Of one shard only.
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

  /** The answer to a command that waits, on a connection of its own. */
  private async blocking(command: Command, timeout: Duration, signal?: AbortSignal): Promise<unknown> {
    signal?.throwIfAborted();
    const line = await (await this.driver()).connect(command[1] as Buffer, CONNECT_MS);
    const end = () => line.close();
    signal?.addEventListener('abort', end);
    try {
      signal?.throwIfAborted(); // while it connected
      const [answer] = line.ask([command]);
      const longest = timeout > 0 ? timeout + SLACK_MS : Infinity;
      const reply = await within(answer!, longest, command[0], end);
      if (reply instanceof Error) throw withoutModule(reply) ?? reply;
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
   * The job is done, with a result unless that is nothing. False where the token is no longer its current one: somebody else
   * has it, or it is gone.
   */
  async ack(id: Bytes, token: string, result?: unknown): Promise<boolean> {
    return (await this.ackMany(new Map([[toText(toBytes(id)), token]]), { [toText(toBytes(id))]: result })) > 0;
  }

  /** `ack` for many, with results by id. Returns how many were done: those whose tokens were current. */
  async ackMany(tokens: Tokens, results: Results = {}): Promise<number> {
    const known = results instanceof Map ? results : new Map(Object.entries(results));
    const ofId = (id: Buffer) => encoded(this.codec, known.get(toText(id)), 'result');
    const calls = this.pairs(tokens).flatMap(([key, ids, pairs]) => {
      const all = ids.map((id, n) => [id, pairs[2 * n + 1]!, ofId(id)] as const);
      const [bare, given] = [all.filter((one) => one[2].length === 0), all.filter((one) => one[2].length > 0)];
      const call = (word: string, words: Word[]): Command[] => (words.length ? [['DQ.ACK', key, word, ...words]] : []);
      return [
        ...call(
          'WITHTOKENS',
          bare.flatMap(([id, token]) => [id, token]),
        ),
        ...call('RESULTS', given.flat()),
      ];
    });
    return sum(await this.run(calls));
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
  async touch(id: Bytes, token?: string | null, options: TouchOptions = {}): Promise<Date | null> {
    const rest = words.ofTouch(takes('touch', options, words.TOUCH));
    return maybeFromMs(await this.one(id, 'DQ.TOUCH', ...words.value('TOKEN', token), ...rest));
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
    return jobInfo(asMap(await this.one(id, 'DQ.GET')), this.codec);
  }

  /** The first jobs of a state, in that state's order (of each shard). */
  async peek(state: State, options: { count?: number; since?: Date; until?: Date } = {}): Promise<Peeked[]> {
    const { count: most = 1, since, until } = takes('peek', options, { count: 1, since: 1, until: 1 });
    const span = [...words.instant('FROM', since), ...words.instant('TO', until)];
    const replies = (await this.each('DQ.PEEK', state, ...span, 'COUNT', most)) as any[][][];
    return replies.flat().map(peeked);
  }

  /** One step through the ids: the next cursor (`'0'` at the end) and some ids. `ids` takes all steps. */
  async scan(cursor = '0', options: ScanOptions & { shard?: number } = {}): Promise<[cursor: string, ids: string[]]> {
    const { shard = 0, state, match } = takes('scan', options, { shard: 1, ...SCAN });
    const rest = [
      ...words.value('STATE', state),
      ...words.value('MATCH', match),
      ...words.value('GROUP', options.group),
      ...words.value('PAYLOAD', options.payload),
      ...words.value('COUNT', options.count),
    ];
    const [reply] = (await this.run([['DQ.SCAN', this.keys[shard]!, cursor, ...rest]])) as [[Buffer, Buffer[]]];
    return [String(reply[0]), reply[1].map(toText)];
  }

  /** All ids, step by step. */
  async *ids(options: ScanOptions = {}): AsyncGenerator<string, void, void> {
    takes('ids', options, SCAN);
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
