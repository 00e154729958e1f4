// How jobs end, for who added them: results, waits, cancellations and signals.

import { Adding } from './adding';
import { decodedValue, encoded } from './codec';
import { JobFailed } from './errors';
import { KEEP_MS } from './limits';
import { takes } from './mistakes';
import { ADD, type AddOptions } from './options';
import type { Ended } from './results';
import { type Bytes, toBytes, toText } from './text';
import { type Duration, toMs } from './times';
import { Waits } from './waits';
import { asMap } from './wire';

export interface WaitOptions {
  /** Ends the wait: it throws the signal's reason. */
  signal?: AbortSignal;
}

export interface AddAndWaitOptions extends AddOptions, WaitOptions {
  /** How long it waits; without one, as long as it takes. */
  timeout?: Duration;
}

const ADD_AND_WAIT: Record<keyof AddAndWaitOptions, 1> = { timeout: 1, signal: 1, ...ADD };

export class Outcomes<T = any> extends Adding<T> {
  private readonly waits = new Map<string, Waits>();

  /**
   * What the handler of a job that is done returned, if the queue or the job keeps it; else null. Throws JobFailed where the
   * job is dead.
   */
  async result<R = any>(id: Bytes): Promise<R | null> {
    const job = asMap(await this.one(id, 'DQ.GET'));
    const state = String(job?.get('state') ?? '');
    if (state === 'done') return this.resultOf(id, job!.get('result') as Buffer | null);
    if (state === 'dead') throw failure(toBytes(id), 'dead', job!.get('reason') as Buffer | null);
    return null;
  }

  /**
   * Waits until the job has ended, and returns what its handler returned. Throws JobFailed where it failed for good, was
   * deleted or has expired, and a TimeoutError after so long. All waits of a queue share one connection.
   */
  async wait<R = any>(id: Bytes, timeout?: Duration | null, options: WaitOptions = {}): Promise<R | null> {
    const { signal } = takes('wait', options, { signal: 1 });
    signal?.throwIfAborted();
    const ms = timeout === undefined || timeout === null ? null : toMs(timeout, 'timeout');
    const [raw, outcome, value] = await this.waitsOf(this.key(id)).wait(toBytes(id), ms, signal);
    if (outcome !== 'done') throw failure(raw, outcome as JobFailed['outcome'], value);
    return this.resultOf(id, value);
  }

  /** Adds a job, whose result is kept for a minute unless `keep` says otherwise, and waits for it: `add` and `wait`. */
  async addAndWait<R = any>(data: T, options: AddAndWaitOptions = {}): Promise<R | null> {
    const { timeout, signal, ...rest } = takes('addAndWait', options, ADD_AND_WAIT);
    signal?.throwIfAborted();
    const begun = performance.now();
    const id = (await this.add(data, { keep: KEEP_MS, ...rest })) ?? rest.id!;
    const left = timeout === undefined ? null : Math.max(0, toMs(timeout, 'timeout') - (performance.now() - begun));
    return this.wait<R>(id, left, { signal });
  }

  /** Removes a job, in whatever state; a handler that runs it is told. True where it was there. */
  async cancel(id: Bytes): Promise<boolean> {
    return Number(await this.one(id, 'DQ.DEL')) > 0;
  }

  /**
   * Gives a job the value for which its handler waits, or will, by that name. True where it was set now, false where it was
   * set before, null where there is no such job.
   */
  async signal(id: Bytes, name: string, value?: unknown): Promise<boolean | null> {
    const bytes = encoded(this.codec, value, `the value of signal '${name}'`);
    const reply = await this.one(id, 'DQ.SIGNAL', name, ...(bytes.length > 0 ? [bytes] : []));
    return reply === null ? null : Number(reply) === 1;
  }

  /** Keeps a value with a job that was popped by hand. False where the token is no longer its current one. */
  async step(id: Bytes, token: string, name: string, value?: unknown): Promise<boolean> {
    const bytes = encoded(this.codec, value, `the value of step '${name}'`);
    return Number(await this.one(id, 'DQ.STEP', token, name, bytes)) === 1;
  }

  override async close(): Promise<void> {
    for (const waits of this.waits.values()) waits.close();
    this.waits.clear();
    await super.close();
  }

  private waitsOf(key: Buffer): Waits {
    const name = key.toString('latin1');
    const known = this.waits.get(name);
    if (known) return known;
    const unblock = async (clientId: number) => (await this.run([['CLIENT', 'UNBLOCK', String(clientId)]], key))[0];
    const made = new Waits(() => this.driver(), key, unblock);
    this.waits.set(name, made);
    return made;
  }

  private resultOf(id: Bytes, result: Ended[2]): any {
    return decodedValue(this.codec, result, `the result of ${toText(toBytes(id))}`);
  }
}

const failure = (id: Buffer, outcome: JobFailed['outcome'], reason: Buffer | null) =>
  new JobFailed(toText(id), outcome, reason && String(reason));
