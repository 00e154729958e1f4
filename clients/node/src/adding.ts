// What producers call to add jobs.

import { isDeepStrictEqual } from 'node:util';
import { type Codec, jsonCodec, writeEnvelope } from './codec';
import type { Part } from './delivery';
import type { Client } from './driver';
import { DqError, Refused } from './errors';
import { careful, Guard } from './guard';
import { count } from './handler';
import { consoleLogger, type Hooks, type Logger } from './hooks';
import { type IsDue, Keys, newId, unsure } from './keys';
import { KEEP_MS, MADD_BYTES, MADD_JOBS, MOST_AFTER } from './limits';
import { ruled, takes } from './mistakes';
import * as words from './options';
import { isGiven, type AddOptions, type CronOptions, type EveryOptions, type JobOptions } from './options';
import { type Bytes, isUnheld, someOf, toBytes, toText } from './text';
import { type Duration, toMs } from './times';
import { asMap, type Command, type Word } from './wire';

export interface QueueOptions<T = unknown> {
  /** Spreads the queue over this many keys, `name:{0}` to `name:{n-1}`, by the CRC-32 of the id. */
  shards?: number;
  /** Encodes data as bytes; JSON by default. */
  codec?: Codec<T>;
  hooks?: readonly Hooks[];
  /** Gets the errors of hooks. */
  logger?: Logger;
}

/** A job for `addMany` and `join`. */
export type NewJob<T = unknown> = { data: T } & AddOptions;
/** A job of a `chain`. */
type Chained<T> = { data: T } & Omit<AddOptions, 'after' | 'afterGroup'>;
/** The last job of a `join`. */
export type JoinedJob<T = unknown> = NewJob<T> & { after?: undefined; afterGroup?: undefined };

/** A job that is about to be added. */
interface Addition {
  key: Buffer;
  id: Buffer;
  payload: Buffer;
  rest: Word[];
}

/** What DQ.GET says of a job; null if there is none. */
type Found = Map<string, unknown> | null;

const hasEnded = (job: Found) => /done|dead/.test(String(job?.get('state')));
const isBegun = (job: Found) => Number(job?.get('attempts') ?? 0) > 0 || hasEnded(job);

const ADD_MANY: Record<'data' | keyof AddOptions, 1> = { data: 1, ...words.ADD };

/** Adds jobs. */
export class Adding<T = unknown> extends Keys {
  readonly codec: Codec<T>;
  readonly hooks: readonly Hooks[];
  protected readonly guard: Guard;

  /** client: a URL (ioredis is used if it is installed, else node-redis), or a client of ioredis or node-redis. */
  constructor(client: Client, name: string, options: QueueOptions<T> = {}) {
    takes('a queue', options, { shards: 1, codec: 1, hooks: 1, logger: 1 });
    super(client, name, count(options.shards ?? 0, 'shards'));
    this.codec = options.codec ?? jsonCodec;
    this.hooks = [...(options.hooks ?? [])];
    this.guard = new Guard(this.hooks, careful(options.logger ?? consoleLogger));
  }

  // --- Jobs

  /**
   * Adds a job, due now, after `delay` or at the instant `at`. Returns its id, or null if it was refused.
   *
   * data: bytes, or a value that the codec encodes (JSON by default). Throws QueueFull if the queue has reached its MAXLEN
   * or MAXBYTES.
   */
  add(data: T, options?: AddOptions & { id?: undefined; ifExists?: undefined }): Promise<string>;
  add(data: T, options: AddOptions): Promise<string | null>;
  async add(data: T, options: AddOptions = {}): Promise<string | null> {
    return (await this.addAll([[data, takes('add', options, words.ADD)]]))[0]!;
  }

  /**
   * Adds many jobs in one round trip. Returns their ids, with null for a job that was refused. If some are `after` others
   * of the list, all are added in one transaction: a job that is refused does not undo the ones before it.
   */
  async addMany(jobs: readonly ({ data: T } & AddOptions)[]): Promise<(string | null)[]> {
    const taken = jobs.map((job) => {
      const { data, ...options } = takes('a job of addMany', job, ADD_MANY);
      return [data, options] as const;
    });
    return this.addAll(taken);
  }

  /** Adds jobs in one transaction, each of which begins when the one before it has ended. Returns as `addMany`. */
  chain(jobs: readonly (Chained<T> & { id?: undefined; ifExists?: undefined })[]): Promise<string[]>;
  chain(jobs: readonly Chained<T>[]): Promise<(string | null)[]>;
  async chain(jobs: readonly Chained<T>[]): Promise<(string | null)[]> {
    let last: Bytes | null = null;
    const links = jobs.map((job) => {
      const { id, after: given, ...rest }: AddOptions = takes('a job of chain', job, ADD_MANY);
      const after: readonly Bytes[] | undefined = last === null ? given : [last];
      last = id ?? this.newId(after?.length ? this.key(after[0]!) : null);
      return { ...rest, id: last, after } as { data: T; id: Bytes } & AddOptions;
    });
    return this.addAll(
      links.map(({ data, ...options }) => [data, options]),
      jobs,
    );
  }

  /**
   * Adds jobs, and one that begins when all of them have ended: `then`. Returns its id, or null if it was refused.
   *
   * All are added in one transaction. `results` of the last job say how the others ended, its `onDead` what it does if one
   * dies. It is kept for a minute by default: if the answer of the server is lost, it is looked up, and all are sent again
   * only if it is not there and none of the others ran. Where nobody can tell, as its `keep` is over or a job of its `id` was
   * there and had not ended, the error of the connection says so.
   *
   * More than 1000 jobs are joined by their group: one that they have in common, or a new one. Then `results` is empty.
   */
  async join(jobs: readonly NewJob<T>[], { then, ...rest }: { then: JoinedJob<T> }): Promise<string | null> {
    takes('join', rest, {});
    if (!Array.isArray(jobs) || jobs.length === 0) throw new TypeError('join needs jobs that come before the last one');
    const all = [...jobs, { ...then, keep: then.keep ?? KEEP_MS }].map((job) => takes('a job of join', job, ADD_MANY));
    if (isGiven(then.after) || isGiven(then.afterGroup)) {
      throw new TypeError('then takes neither after nor afterGroup: it is after the jobs of the join');
    }
    const given = all.find(({ id }) => isGiven(id))?.id;
    const key = this.key(given ?? newId());
    const ids = all.map(({ id }) => id ?? this.newId(key));
    if (ids.some((id) => this.key(id) !== key)) {
      throw new TypeError('the jobs of a join must be in one shard: leave their ids out');
    }
    const last = ids.pop()!;
    const group = jobs[0]!.group ?? `join:${newId()}`;
    const isGrouped = jobs.length > MOST_AFTER;
    if (isGrouped && jobs.some((job) => (job.group ?? group) !== group)) {
      throw new TypeError(`more than ${MOST_AFTER} jobs are joined by their group: give them one, or none`);
    }
    const after = isGrouped ? { afterGroup: group } : { after: ids };
    const made = [
      ...jobs.map((job, n) => ({ ...job, id: ids[n]!, ...(isGrouped && { group }) })),
      { ...all.at(-1)!, id: last, ...after },
    ];
    const headers = this.hooks.length > 0 ? await Promise.all(made.map((job) => this.headers(job))) : null;
    const additions = made.map(({ data, ...job }, n) =>
      this.addition(data, job.id, job, headers ? headers[n] : job.headers),
    );
    const replies = await this.together(key, packed(additions), this.onceAdded(key, additions, all.at(-1)!));
    const isRefusable = isGiven(then.id) || then.ifExists === 'only-replace';
    return replies?.at(-1) === null && isRefusable ? null : toText(toBytes(last));
  }

  /**
   * When jobs are sent that are added at once: again after a lost answer, if the last one is not there, and none of the others
   * ran. Throws if it is not known. The options are the last one's, as the program gave them.
   */
  private onceAdded(key: Buffer, additions: readonly Addition[], { id, keep, ttl }: AddOptions): IsDue {
    const look = async (some: readonly Addition[]) =>
      (await this.run(some.map((one): Command => ['DQ.GET', key, one.id, 'PREFIX', 0]))).map(asMap);
    const keptMs = Math.min(toMs(keep ?? 0, 'keep'), isGiven(ttl) ? toMs(ttl, 'ttl') : Infinity);
    let was: Found = null; // a job that had the id of the last one before
    let sentAt = 0;
    return async (lost) => {
      if (lost === null) {
        if (isGiven(id)) was = (await look(additions.slice(-1)))[0]!;
        sentAt = performance.now();
        return true;
      }
      const others = await look(additions);
      const last = others.pop()!;
      // A job that is still to run is not replaced, so what becomes of it tells nothing. One that has ended does not change.
      const isHidden = was !== null && !hasEnded(was);
      if (last !== null && !isHidden && !isDeepStrictEqual(last, was)) return false;
      const isLate = last === null && performance.now() - sentAt >= keptMs;
      const isKnown = !isLate && !isHidden && !others.some(isBegun);
      if (isKnown && (last !== null || !(await this.isBounded(key)))) return true;
      throw unsure(lost);
    };
  }

  /** Whether a job that has ended may go before its `keep` is over, as others end. */
  private async isBounded(key: Buffer): Promise<boolean> {
    const [settings] = await this.run([['DQ.CFGGET', key]]).catch((error) => {
      if (error instanceof Refused && error.code === 'NOPERM') return [['donelen', 1]];
      throw error;
    });
    const found = asMap(settings);
    return ['donelen', 'donebytes', 'deadlen'].some((limit) => Number(found?.get(limit) ?? 0) > 0);
  }

  private newId(key: Buffer | null): string {
    for (;;) {
      const id = newId();
      if (key === null || this.key(id) === key) return id;
    }
  }

  private async addAll(
    jobs: readonly (readonly [data: T, options: AddOptions])[],
    given: readonly AddOptions[] = jobs.map(([, options]) => options),
  ): Promise<(string | null)[]> {
    const headers = this.hooks.length > 0 ? await Promise.all(jobs.map(([, options]) => this.headers(options))) : null;
    // Ids of our own: if a client sends a command again whose reply was lost, the first sending has added the job.
    const additions = jobs.map(([data, options], n) => {
      const id = options.id ?? this.newId(options.after?.length ? this.key(options.after[0]!) : null);
      return this.addition(data, id, options, headers ? headers[n] : options.headers);
    });
    if (this.shards > 1 && jobs.some(([, { afterGroup }]) => isGiven(afterGroup))) {
      throw new TypeError('afterGroup does not work in a sharded queue: each shard has a group of that name');
    }
    const named = jobs.flatMap(([, { after }]) => after ?? []);
    const isFlow = jobs.some(([, { after, afterGroup }]) => after?.length || afterGroup !== undefined);
    const adds = isFlow && jobs.length > 1 ? this.addFlow(additions, given.at(-1)!) : this.addThem(additions);
    const replies = await adds.catch(async (error: unknown) => {
      throw error instanceof Refused && isUnheld(error) ? await this.unknownIn(named, error) : error;
    });
    return replies.map((reply, n) => {
      const { id = null, ifExists = null } = given[n]!;
      return reply === null && (id !== null || ifExists !== null) ? null : toText(additions[n]!.id);
    });
  }

  /** The error with the ids that the queue does not hold, and what to do; as it was if nobody can say which. */
  private async unknownIn(named: readonly Bytes[], cause: Error): Promise<Error> {
    const ids = [...new Set(named.map((id) => toText(toBytes(id))))];
    const calls = ids.map((id): Command => ['DQ.GET', this.key(id), toBytes(id), 'PREFIX', 0]);
    const found = await this.run(calls).catch(() => []);
    const missing = ids.filter((_, n) => found[n] === null);
    if (missing.length === 0) return cause;
    return new DqError(
      `after names ${someOf(missing)}, which the queue does not hold: it has ended, or was never added. ` +
        'Add jobs and those after them in one call (addMany, chain), or with a keep',
      { cause },
    );
  }

  private headers({ headers }: JobOptions): Promise<Record<string, string> | undefined> {
    return this.guard.adding(this.name, headers);
  }

  private addition(data: T, id: Bytes, options: AddOptions, headers: JobOptions['headers']): Addition {
    const bytes = words.newId(id);
    const key = this.key(id);
    if (this.shards > 0 && options.after?.some((other) => this.key(other) !== key)) {
      throw new TypeError(
        `job ${toText(toBytes(id))} must be in the shard of the jobs that it is after: leave its id out`,
      );
    }
    const rest = [
      ...words.saidOf(options),
      ...words.ofAfter(options),
      ...words.condition(options.ifExists),
      ...words.due(options.delay, options.at),
    ];
    return { key, id: bytes, payload: this.payload(data, options.kind ?? null, headers), rest };
  }

  private payload(data: T, kind: string | null, headers: JobOptions['headers']): Buffer {
    if (data === undefined) throw new TypeError('data is undefined: a job without data has null');
    const isEnvelope = kind !== null || Object.keys(headers ?? {}).length > 0;
    const payload = isEnvelope ? writeEnvelope(data, kind ?? undefined, headers) : this.codec.encode(data);
    return toBytes(payload, 'a payload');
  }

  private async addFlow(additions: readonly Addition[], last: AddOptions): Promise<unknown[]> {
    const { key } = additions[0]!;
    if (additions.some((one) => one.key !== key)) {
      throw new TypeError('jobs after others must be added to one shard: chain, or a call for each shard');
    }
    const sent = await this.together(key, additions.map(command), this.onceAdded(key, additions, last));
    return sent ?? additions.map(({ id }) => id);
  }

  private async addThem(additions: readonly Addition[]): Promise<unknown[]> {
    const options = JSON.stringify(additions[0]?.rest);
    const isAlike = additions.length > 1 && additions.every(({ rest }) => JSON.stringify(rest) === options);
    if (!isAlike || additions[0]!.rest.includes('NEXT')) return this.run(additions.map(command));
    const parts = chunks(additions);
    const replies = (await this.run(parts.map((part) => together(part.map((n) => additions[n]!))))) as unknown[][];
    const ids: unknown[] = [];
    for (const [p, part] of parts.entries()) for (const [at, n] of part.entries()) ids[n] = replies[p]![at];
    return ids;
  }

  /** @internal The commands that add jobs to the key of the job that spawns them; a job that exists is not added again. */
  async commandsOf(key: Buffer, parts: readonly Part[]): Promise<Command[]> {
    return Promise.all(
      parts.map(async ({ id, data, options }) => {
        const headers = this.hooks.length > 0 ? await this.headers(options) : options.headers;
        const made = this.addition(
          data as T,
          id,
          takes('a job of spawn', { ...options, ifExists: undefined }, words.ADD),
          headers,
        );
        if (made.key.equals(key)) return command({ ...made, rest: [...made.rest, 'NX'] });
        throw new TypeError(`job ${toText(id)} must be in the shard of the job that spawns it: leave its id out`);
      }),
    );
  }

  // --- Recurring jobs

  /** Adds a recurring job, due every `interval`. Call it at each start: an unchanged rule goes on as it was. */
  async every(interval: Duration, data: T, options: EveryOptions): Promise<string | null> {
    takes('every', ruled('every', options), words.EVERY);
    const rule = ['EVERY', toMs(interval, 'interval', 1), ...words.ofRule(options)];
    return this.addRule(data, options, [...rule, ...words.due(null, options.first)]);
  }

  /** Adds a recurring job, due by a cron expression. See `every`. */
  async cron(expression: string, data: T, options: CronOptions): Promise<string | null> {
    takes('cron', ruled('cron', options), words.CRON);
    const rule = ['CRON', expression, ...words.value('TZ', options.tz), ...words.ofRule(options)];
    return this.addRule(data, options, rule);
  }

  private async addRule(data: T, options: EveryOptions | CronOptions, rule: Word[]): Promise<string | null> {
    const [reply] = await this.run([await this.ruleCommand(data, options, rule)]);
    return reply === null ? null : toText(reply as Buffer);
  }

  protected async ruleCommand(data: T, options: EveryOptions | CronOptions, rule: Word[]): Promise<Command> {
    const headers = this.hooks.length > 0 ? await this.headers(options) : options.headers;
    const payload = this.payload(data, options.kind ?? null, headers);
    const rest = [...rule, ...words.saidOf(options), 'REPLACE'];
    return command({ key: this.key(options.id), id: words.newId(options.id), payload, rest });
  }
}

const command = ({ key, id, payload, rest }: Addition): Command => ['DQ.ADD', key, id, payload, ...rest];

/** One command for jobs of one key with equal options. */
const together = (some: readonly Addition[]): Command => [
  'DQ.MADD',
  some[0]!.key,
  some.length,
  ...some.flatMap(({ id, payload }) => [id, payload]),
  ...some[0]!.rest,
];

/** Commands that add these jobs of one key in this order: jobs with equal options share one. */
function packed(additions: readonly Addition[]): Command[] {
  const parts: Addition[][] = [];
  let like: string | null = null;
  let bytes = 0;
  for (const one of additions) {
    const isAlone = one.rest.includes('AFTER') || one.rest.includes('NEXT');
    const options = isAlone ? null : JSON.stringify(one.rest);
    const part = parts.at(-1);
    bytes += one.id.length + one.payload.length;
    if (part && options !== null && options === like && part.length < MADD_JOBS && bytes <= MADD_BYTES) {
      part.push(one);
      continue;
    }
    parts.push([one]);
    [like, bytes] = [options, one.id.length + one.payload.length];
  }
  return parts.map((part) => (part.length === 1 ? command(part[0]!) : together(part)));
}

/** The jobs' indexes, by key, in groups that fit one command. */
function chunks(additions: readonly Addition[]): number[][] {
  const all: number[][] = [];
  const open = new Map<Buffer, { part: number[]; bytes: number }>();
  for (const [n, { key, id, payload }] of additions.entries()) {
    const bytes = id.length + payload.length;
    let chunk = open.get(key);
    if (!chunk || chunk.part.length >= MADD_JOBS || chunk.bytes + bytes > MADD_BYTES) {
      chunk = { part: [], bytes: 0 };
      open.set(key, chunk);
      all.push(chunk.part);
    }
    chunk.part.push(n);
    chunk.bytes += bytes;
  }
  return all;
}
