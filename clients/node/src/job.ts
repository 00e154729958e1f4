// A job, as a handler sees it.

import { setTimeout as sleep } from 'node:timers/promises';
import { Attempt, idsOf, late, Steps } from './attempt';
import { type Codec, decodedValue, encoded, type Envelope, jsonCodec } from './codec';
import { costing, ENDED, once, step } from './commands';
import { type Delivery, OVER, type Part } from './delivery';
import { Cancelled, DqError, EncodingError, Suspended } from './errors';
import { takes } from './mistakes';
import type { AddOptions, OnDead } from './options';
import { progressOf } from './progress';
import { hush, Quiet } from './quiet';
import { type JobResult, results } from './results';
import { shown } from './shown';
import { type Bytes, toBytes, toText } from './text';
import { type Duration, fromMs, maybeFromMs, toMs } from './times';
import { LONGEST_TIMER_MS } from './waiting';
import type { Command, Word } from './wire';

export interface WaitForOptions {
  /** What the ends are kept as; by default the how-manieth `waitFor` or `spawn` of the attempt it is. */
  name?: string;
  onDead?: OnDead;
}

const WAIT_FOR: Record<keyof WaitForOptions, 1> = { name: 1, onDead: 1 };

/** A job that `spawn` adds. */
export type SpawnedJob = { data: any } & Omit<AddOptions, 'ifExists' | 'after' | 'afterGroup' | 'onDead'>;

/** One delivery of a job. */
export class Job<T = any> {
  #delivery: Delivery;
  #attempt: Attempt;
  #data: { value: T } | null = null;

  /** @internal */
  constructor(delivery: Delivery) {
    this.#delivery = delivery;
    this.#attempt = new Attempt(delivery);
  }

  /** The job's id. Bytes that are not UTF-8 are lone surrogates. */
  get id(): string {
    return this.#delivery.name;
  }

  /** The key that it came from; of a sharded queue, the shard's. */
  get queue(): string {
    return toText(this.#delivery.key);
  }

  /** The payload's bytes, envelope included. */
  get payload(): Buffer {
    return this.#delivery.payload;
  }

  /** What names this delivery. It is larger than a number can hold. */
  get token(): string {
    return this.#delivery.token.toString();
  }

  /** How often the job was delivered, this time included. */
  get attempt(): number {
    return this.#delivery.attempt;
  }

  /** How many deliveries are allowed, by the job or else its handler; null where there is no limit. */
  get maxAttempts(): number | null {
    return this.#delivery.limit || null;
  }

  /** If this attempt fails, the job is dead. */
  get isLastAttempt(): boolean {
    const { limit, attempt } = this.#delivery;
    return limit > 0 && attempt >= limit;
  }

  /** When the lease ended at delivery. The worker keeps renewing it while the handler runs. */
  get deadline(): Date {
    return fromMs(this.#delivery.deadlineMs);
  }

  /** When the job was due; of a recurring one, the instant of its occurrence. */
  get due(): Date | null {
    return maybeFromMs(this.#delivery.dueMs);
  }

  get occurrence(): Date | null {
    return this.due;
  }

  /** The envelope, where the payload is one. */
  get envelope(): Envelope | null {
    return this.#delivery.envelope;
  }

  get kind(): string | null {
    return this.envelope?.kind ?? null;
  }

  get headers(): Readonly<Record<string, string>> {
    return this.envelope?.headers ?? {};
  }

  /** What was added, as the queue's codec reads it. Throws PayloadError; of that the job dies. */
  get data(): T {
    this.#data ??= { value: this.#delivery.data() as T };
    return this.#data.value;
  }

  /** Aborts once the job was lost, its handler's timeout is over, or the worker stops: for `fetch`, drivers, timers. */
  get signal(): AbortSignal {
    return this.#delivery.signal;
  }

  /** Another worker may have the job: stop, the end of this handler will not count. */
  get lost(): boolean {
    return this.#delivery.told === 'lost';
  }

  /** The job was lost, its handler's timeout is over, or the worker stops and the handler's time to finish is over. */
  get cancelled(): boolean {
    return this.#delivery.told !== null;
  }

  /** Throws `Cancelled` where `cancelled`: for long handlers, between two steps. */
  check(): void {
    this.#attempt.check();
  }

  /** Waits, and keeps the job; throws `Cancelled` at once when `cancelled`. See `sleep`, which ends the attempt. */
  pause(duration: Duration): Promise<void> {
    const ms = Math.min(toMs(duration), LONGEST_TIMER_MS);
    const waits = sleep(ms, undefined, { signal: this.#delivery.signal });
    return Quiet.of(waits.catch(() => {}).then(() => this.check()));
  }

  /**
   * Shows how far it is, a fraction of 0 to 1 and perhaps a text, in `progress` of `queue.get`. Call it as often as you like:
   * the server is told at most once a second, and before the job ends.
   */
  progress(fraction: number, text = ''): void {
    const told = progressOf(fraction, text);
    if (this.#delivery.suspension) throw new Suspended();
    this.#delivery.progress = told;
    this.#delivery.desk.report(this.#delivery);
  }

  /** What this delivery counts in the rates of the queue and its group, where that is known only afterwards. */
  setCost(cost: number): Promise<void> {
    return Quiet.of(this.#setCost(cost));
  }

  async #setCost(cost: number): Promise<void> {
    if (!Number.isSafeInteger(cost)) throw new TypeError(`a cost is a whole number, not ${shown(cost)}`);
    this.#attempt.check();
    const [reply] = await this.#delivery.desk.ask(this.#delivery, [costing(this.#delivery, cost)]);
    if (reply === null) this.#lost();
  }

  /** In a batch: this one job is done, with a result, whatever becomes of the others. */
  succeed(result?: unknown): void {
    hush(result);
    this.#delivery.said = { value: result };
  }

  /** In a batch: this one job failed (or is retried, snoozed, given up), and the others did not. */
  fail(error: unknown): void {
    hush(error);
    this.#delivery.said = { error };
  }

  // --- Other jobs, steps and signals

  /** How the jobs ended that this one was added `after`, in that order. */
  get results(): JobResult[] {
    return results(this.#delivery.results, this.#delivery.codec);
  }

  /** What was done in earlier attempts and this one, and what signals brought, by name. */
  get steps(): Steps {
    return new Steps(this.#delivery.steps, (value, name) => this.#decode(value, name));
  }

  /**
   * Calls `work` once in the life of the job: its value is kept with the job, and later attempts get it from there. What is
   * not a step runs again in each attempt.
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

  /** Ends the attempt: the handler begins again after so long, and then this returns. It is not counted. See `pause`. */
  sleep(name: string, duration: Duration): Promise<void> {
    return Quiet.of((async () => this.#attempt.sleep(name, toMs(duration)))());
  }

  /**
   * The value that `queue.signal` gave under that name. Where there is none yet, ends the attempt: the handler begins again
   * when it comes. Throws a TimeoutError where it does not within `timeout`.
   */
  wait<V = any>(name: string, timeout: Duration | null = null): Promise<V | null> {
    return Quiet.of(this.#wait(name, timeout));
  }

  async #wait(name: string, timeout: Duration | null): Promise<any> {
    const found = this.#attempt.wait(name, timeout === null ? null : toMs(timeout, 'timeout'));
    if ('value' in found) return this.#decode(found.value, name);
    await this.#keep(found.keep, OVER);
    throw late(name);
  }

  /**
   * How those jobs of the same queue ended. Where they have not yet, ends the attempt: the handler begins again when all
   * have. `onDead`: what to do when one dies (`wait` until it is kicked, `run` by default, `die` too).
   */
  waitFor(ids: readonly Bytes[], options: WaitForOptions = {}): Promise<JobResult[]> {
    return Quiet.of(this.#waitFor(ids, takes('waitFor', options, WAIT_FOR)));
  }

  async #waitFor(given: readonly Bytes[], { name, onDead }: WaitForOptions): Promise<JobResult[]> {
    const ids = idsOf(given);
    return this.#after(this.#attempt.join(name), ids, onDead);
  }

  /**
   * Adds jobs to the same queue and waits for their ends, as `waitFor`, all or nothing. Their ids are made of this job's, so
   * that they are added once.
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
    const ids = idsOf(parts.map(({ id }) => id));
    const adds = this.#attempt.hasEnded(name, ids) ? [] : await delivery.desk.adding(delivery, parts);
    this.#attempt.check();
    return this.#after(name, ids, onDead, adds);
  }

  async #after(name: string, ids: Buffer[], onDead: OnDead = 'run', adds: Command[] = []): Promise<JobResult[]> {
    const { ended, keep } = this.#attempt.after(name, ids, onDead, adds);
    if (keep) await this.#keep(keep.step, Buffer.from(keep.value));
    return results(ended, this.#delivery.codec);
  }

  /**
   * Runs a Lua script on the server, once in the life of the job, as a step: its writes and the step take effect together.
   * True where it ran now. One that fails throws, and runs again in the next attempt; what it wrote before is not undone.
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
    const [reply] = await this.#delivery.desk.ask(this.#delivery, [once(this.#delivery, name, script, keys, args)]);
    if (reply === null) this.#lost();
    if (Array.isArray(reply)) throw new DqError(String(reply[0]));
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

  /** Somebody else has it by now, and the handler hears of it. */
  #lost(): never {
    this.#delivery.desk.lose(this.#delivery);
    throw new Cancelled('lost');
  }
}

const word = (given: Bytes | number): Word => (typeof given === 'number' ? given : toBytes(given, 'an argument'));

/** As JSON it could not be read again. */
function refuseBytes(codec: Codec, value: unknown, name: string): void {
  if (codec !== jsonCodec || !(value instanceof Uint8Array)) return;
  throw new EncodingError(`the value of step '${name}' cannot be encoded: bytes need a queue with another codec`);
}

/** What a handler and its hooks get of a delivery. */
export function jobOf(delivery: Delivery): Job {
  delivery.view ??= new Job(delivery);
  return delivery.view as Job;
}
