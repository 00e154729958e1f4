// A job, as a handler sees it.

import { setTimeout as sleep } from 'node:timers/promises';
import { Attempt, idsOf, Steps } from './attempt';
import { type Codec, decodedValue, encoded, type Envelope, jsonCodec } from './codec';
import { correcting, ENDED, once, step } from './commands';
import { type Delivery, OVER, type Part } from './delivery';
import { Cancelled, EncodingError, Suspended } from './errors';
import { refused } from './fatal';
import { takes } from './mistakes';
import type { AddOptions, OnDead } from './options';
import { progressOf } from './progress';
import { hush, Quiet } from './quiet';
import { type JobResult, results } from './results';
import { type Bytes, toBytes, toText } from './text';
import { type Duration, fromMs, maybeFromMs, toMs } from './times';
import { LONGEST_TIMER_MS } from './waiting';
import type { Command, Word } from './wire';

export interface WaitForOptions {
  /** The name under which the ends are kept; by default the number of the `waitFor` or `spawn` in its attempt. */
  name?: string;
  onDead?: OnDead;
}

const WAIT_FOR: Record<keyof WaitForOptions, 1> = { name: 1, onDead: 1 };

/** A job that `spawn` adds. */
export type SpawnedJob = { data: unknown } & Omit<AddOptions, 'ifExists'>;

/** One delivery of a job. */
export class Job<T = unknown> {
  #delivery: Delivery;
  #made: Attempt | null = null;
  #data: { value: T } | null = null;

  /** @internal */
  constructor(delivery: Delivery) {
    this.#delivery = delivery;
  }

  get #attempt(): Attempt {
    return (this.#made ??= new Attempt(this.#delivery));
  }

  /** The job's id. Bytes that are not UTF-8 are lone surrogates. */
  get id(): string {
    return this.#delivery.name;
  }

  /** The key that the job came from; of a sharded queue, the shard's. */
  get queue(): string {
    return toText(this.#delivery.key);
  }

  /** The payload's bytes, envelope included. */
  get payload(): Buffer {
    return this.#delivery.payload;
  }

  /** Identifies this delivery. It is larger than a number can hold. */
  get token(): string {
    return this.#delivery.token.toString();
  }

  /** How often the job was delivered, including this time. */
  get attempt(): number {
    return this.#delivery.attempt;
  }

  /** How many deliveries are allowed: the least of the limits of the job, its queue and its handler; 0: no limit. */
  get maxAttempts(): number {
    return this.#delivery.limit;
  }

  /** Whether the job is dead if this attempt fails. */
  get isLastAttempt(): boolean {
    const { limit, attempt } = this.#delivery;
    return limit > 0 && attempt >= limit;
  }

  /** When the lease ends, as of the delivery. The worker keeps renewing it while the handler runs. */
  get deadline(): Date {
    return fromMs(this.#delivery.deadlineMs);
  }

  /** When the job was due; for a recurring job, the instant of its occurrence. */
  get due(): Date | null {
    return maybeFromMs(this.#delivery.dueMs);
  }

  get occurrence(): Date | null {
    return this.due;
  }

  /** The envelope, if the payload is one. */
  get envelope(): Envelope | null {
    return this.#delivery.envelope;
  }

  get kind(): string | null {
    return this.envelope?.kind ?? null;
  }

  get headers(): Readonly<Record<string, string>> {
    return this.envelope?.headers ?? {};
  }

  /** What was added, decoded by the queue's codec. Throws PayloadError if it cannot be read, of which the job dies. */
  get data(): T {
    this.#data ??= { value: this.#delivery.data() as T };
    return this.#data.value;
  }

  /** Aborts once the job was lost, its handler's timeout is over, or the worker stops. For `fetch`, drivers, timers. */
  get signal(): AbortSignal {
    return this.#delivery.signal;
  }

  /** Another worker may have the job, or it was cancelled. Stop: the end of this handler will not count. */
  get lost(): boolean {
    return this.#delivery.told === 'lost';
  }

  /** The handler must stop: the job was lost, its timeout is over, or the worker stops and its drain is over. */
  get cancelled(): boolean {
    return this.#delivery.told !== null;
  }

  /** Throws `Cancelled` if the job is `cancelled`. Call it in long handlers, between two steps. */
  check(): void {
    this.#attempt.check();
  }

  /** Sleeps for `duration` within this attempt. Throws `Cancelled` as soon as the job is `cancelled`. See `sleep`. */
  pause(duration: Duration): Promise<void> {
    const ms = Math.min(toMs(duration), LONGEST_TIMER_MS);
    const waits = sleep(ms, undefined, { signal: this.#delivery.signal });
    return Quiet.of(waits.catch(() => {}).then(() => this.check()));
  }

  /**
   * Reports how far the handler is, from 0 to 1, and perhaps a text: `progress` of `queue.get`. Call it as often as you
   * like: the server is told at most once a second, and before the job ends.
   */
  progress(fraction: number, text = ''): void {
    const told = progressOf(fraction, text);
    if (this.#delivery.suspension) throw new Suspended();
    this.#delivery.progress = told;
    this.#delivery.desk.report(this.#delivery);
  }

  /** Sets what this delivery counts towards the rates of the queue and its group, if known only afterwards. */
  setCost(cost: number): Promise<void> {
    return Quiet.of(this.#setCost(cost));
  }

  async #setCost(cost: number): Promise<void> {
    const told = correcting(this.#delivery, { cost: cost ?? Number.NaN });
    this.#attempt.check();
    const [reply] = await this.#delivery.desk.ask(this.#delivery, [told]);
    if (reply === null) this.#lost();
  }

  /** In a batch: this job alone is done, with a result. */
  succeed(result?: unknown): void {
    hush(result);
    this.#delivery.said = { value: result };
  }

  /** In a batch: this job alone failed (or is retried, snoozed or given up). */
  fail(error: unknown): void {
    hush(error);
    this.#delivery.said = { error };
  }

  // --- Other jobs, steps and signals

  /** How the jobs ended that this one was added `after`, in that order. */
  get results(): JobResult[] {
    return results(this.#delivery.results, this.#delivery.codec);
  }

  /** What earlier attempts and this one have kept, and what signals brought, by name. */
  get steps(): Steps {
    return new Steps(this.#delivery.steps, (value, name) => this.#decode(value, name));
  }

  /**
   * Calls `work` once in the life of the job, and keeps its value with the job. Later attempts return the kept value. Code
   * outside steps runs again in each attempt.
   */
  step<V>(name: string, work: () => V | PromiseLike<V>): Promise<V> {
    return Quiet.of(this.#step(name, work));
  }

  async #step<V>(name: string, work: () => V | PromiseLike<V>): Promise<V> {
    const kept = this.#attempt.step(name);
    if (kept) return this.#decode(kept, name);
    const value = await work();
    refuseBytes(this.#delivery.codec, value, name);
    await this.#keep(name, encoded(this.#delivery.codec, value, `the value of step '${name}'`));
    return value;
  }

  /** Ends the attempt, uncounted. After `duration` the handler begins again, and then goes on here. See `pause`. */
  sleep(name: string, duration: Duration): Promise<void> {
    return Quiet.of((async () => this.#attempt.sleep(name, toMs(duration)))());
  }

  /**
   * Returns the value of the signal `name`. If it has not come, ends the attempt, uncounted: the handler begins again when it
   * comes. Throws TimedOut if it does not come within `timeout`.
   */
  wait<V = unknown>(name: string, timeout: Duration | null = null): Promise<V | null> {
    return Quiet.of(this.#wait(name, timeout));
  }

  async #wait(name: string, timeout: Duration | null): Promise<any> {
    const ms = timeout === null ? null : toMs(timeout, 'timeout');
    const found = this.#attempt.wait(name, ms);
    if ('value' in found) return this.#decode(found.value, name);
    await this.#keep(found.keep, OVER);
    throw this.#attempt.late(name, ms!);
  }

  /**
   * Returns how these jobs of the queue ended. If some have not, ends the attempt, uncounted: the handler begins again when all
   * have. `onDead`: what to do if one of them dies: `wait` (it may be kicked), `run` (the default) or `die`.
   */
  waitFor(ids: readonly Bytes[], options: WaitForOptions = {}): Promise<JobResult[]> {
    return Quiet.of(this.#waitFor(ids, takes('waitFor', options, WAIT_FOR)));
  }

  async #waitFor(given: readonly Bytes[], { name, onDead }: WaitForOptions): Promise<JobResult[]> {
    const ids = idsOf(given);
    return this.#after(this.#attempt.join(name), ids, onDead);
  }

  /**
   * Adds jobs to the queue and waits for their ends, as `waitFor` does, in one atomic step. Their ids are made from this job's,
   * so that later attempts find the same jobs.
   */
  spawn(jobs: readonly SpawnedJob[], options: WaitForOptions = {}): Promise<JobResult[]> {
    return Quiet.of(this.#spawn(jobs, takes('spawn', options, WAIT_FOR)));
  }

  async #spawn(jobs: readonly SpawnedJob[], { name: given, onDead }: WaitForOptions): Promise<JobResult[]> {
    const name = this.#attempt.join(given);
    const delivery = this.#delivery;
    const parts = jobs.map(({ data, id, ...options }, n): Part => {
      const made = id === undefined ? delivery.desk.idLike(delivery, `${delivery.name}/${name}/${n}`) : toBytes(id);
      return { id: made, data, options };
    });
    if (parts.length === 0) return [];
    const ids = idsOf(parts.map(({ id }) => id));
    const adds = this.#attempt.hasEnded(name, ids) ? [] : await delivery.desk.adding(delivery, parts);
    this.#attempt.check();
    const named = parts.flatMap(({ options }) => options.after ?? []).map((id) => toBytes(id));
    const others = named.filter((one) => !ids.some((id) => id.equals(one)));
    return this.#after(name, ids, onDead, adds, others);
  }

  async #after(name: string, ids: Buffer[], onDead: OnDead = 'run', adds: Command[] = [], named = ids) {
    const { ended, keep } = this.#attempt.after(name, ids, onDead, adds, named);
    if (keep) await this.#keep(keep.step, Buffer.from(keep.value));
    return results(ended, this.#delivery.codec);
  }

  /**
   * Runs a Lua script on the server, once in the life of the job: its writes and the step take effect together. Returns whether
   * it ran now. A script that fails throws, and runs again in the next attempt; what it wrote before is not undone.
   */
  once(name: string, script: string, keys: readonly Bytes[] = [], args: readonly (Bytes | number)[] = []) {
    return Quiet.of(
      this.#once(
        name,
        script,
        keys.map((key) => toBytes(key, 'a key')),
        args.map(word),
      ),
    );
  }

  async #once(name: string, script: string, keys: Buffer[], args: Word[]): Promise<boolean> {
    if (this.#attempt.step(name)?.toString() === ENDED) return false;
    const command = once(this.#delivery, name, script, keys, args);
    const [reply] = await this.#delivery.desk.ask(this.#delivery, [command]);
    if (reply === null) this.#lost();
    if (Array.isArray(reply)) throw refused(new Error(String(reply[0])), command, this.#delivery.id);
    this.#delivery.steps.set(name, Buffer.from(ENDED));
    return Number(reply) === 1;
  }

  #decode(value: Buffer, name: string): any {
    return decodedValue(this.#delivery.codec, value, `the value of step '${name}'`);
  }

  async #keep(name: string, value: Buffer | string): Promise<void> {
    const [reply] = await this.#delivery.desk.ask(this.#delivery, [step(this.#delivery, name, value)]);
    if (reply === null) this.#lost();
    this.#delivery.steps.set(name, Buffer.from(value as string));
  }

  /** Another worker has the job by now: tells the handler. */
  #lost(): never {
    this.#delivery.desk.lose(this.#delivery);
    throw new Cancelled('lost');
  }
}

const word = (given: Bytes | number): Word => (typeof given === 'number' ? given : toBytes(given, 'an argument'));

/** Refuses bytes as a value: from JSON they could not be read again. */
function refuseBytes(codec: Codec, value: unknown, name: string): void {
  if (codec !== jsonCodec || !(value instanceof Uint8Array)) return;
  throw new EncodingError(`the value of step '${name}' cannot be encoded: bytes need a queue with another codec`);
}

/** The `Job` of a delivery, for handlers and hooks. */
export function jobOf(delivery: Delivery): Job {
  delivery.view ??= new Job(delivery);
  return delivery.view as Job;
}
