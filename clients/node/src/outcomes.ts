// How jobs end, for the programs that add them: results, waits, cancellation and signals.

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
  /** Ends the wait, which then throws the signal's reason. */
  signal?: AbortSignal;
}

export interface AddAndWaitOptions extends AddOptions, WaitOptions {
  /** How long to wait; without it there is no limit. */
  timeout?: Duration;
}

const ADD_AND_WAIT: Record<keyof AddAndWaitOptions, 1> = { timeout: 1, signal: 1, ...ADD };

export class Outcomes<T = unknown> extends Adding<T> {
  private readonly waits = new Map<string, Waits>();

  /**
   * The result of a job that is done and kept, by its queue or its `keep`; else null. Throws JobFailed if the job is dead.
   */
  async result<R = unknown>(id: Bytes): Promise<R | null> {
    const job = asMap(await this.one(id, 'DQ.GET'));
    const state = String(job?.get('state') ?? '');
    if (state === 'done') return this.resultOf(id, job!.get('result') as Buffer | null);
    if (state === 'dead') throw failure(toBytes(id), 'dead', job!.get('reason') as Buffer | null);
    return null;
  }

  /**
   * Waits for the end of a job, and returns its result. Throws JobFailed if the job is dead, deleted, expired or unknown, and
   * TimedOut after `timeout`. All waits of a queue share one connection.
   */
  async wait<R = unknown>(id: Bytes, timeout?: Duration | null, options: WaitOptions = {}): Promise<R | null> {
    const { signal } = takes('wait', options, { signal: 1 });
    signal?.throwIfAborted();
    const ms = timeout === undefined || timeout === null ? null : toMs(timeout, 'timeout');
    return this.waited(id, ms, ms, signal);
  }

  /** `left`: what is left of the timeout. */
  private async waited(id: Bytes, timeoutMs: number | null, left: number | null, signal?: AbortSignal): Promise<any> {
    const [raw, outcome, value] = await this.waitsOf(this.key(id)).wait(toBytes(id), left, timeoutMs ?? 0, signal);
    if (outcome !== 'done') throw failure(raw, outcome as JobFailed['outcome'], value);
    return this.resultOf(id, value);
  }

  /** `add`, and then `wait`: a request and its reply. The result is kept for a minute unless `keep` says otherwise. */
  async addAndWait<R = unknown>(data: T, options: AddAndWaitOptions = {}): Promise<R | null> {
    const { timeout, signal, ...rest } = takes('addAndWait', options, ADD_AND_WAIT);
    signal?.throwIfAborted();
    const begun = performance.now();
    const id = (await this.add(data, { keep: KEEP_MS, ...rest })) ?? rest.id!;
    const ms = timeout === undefined ? null : toMs(timeout, 'timeout');
    return this.waited(id, ms, ms === null ? null : Math.max(0, ms - (performance.now() - begun)), signal);
  }

  /** Deletes the job; a handler that runs it is told at once. Returns false if there was no such job. */
  async cancel(id: Bytes): Promise<boolean> {
    return (await this.counted([id], (key, some) => ['DQ.DEL', key, 'IDS', some.length, ...some])) > 0;
  }

  /**
   * Wakes the job that waits for the signal `name`, or will. Returns false if the signal was set before, null if there is no
   * such job.
   */
  async signal(id: Bytes, name: string, value?: unknown): Promise<boolean | null> {
    const bytes = encoded(this.codec, value, `the value of signal '${name}'`);
    const reply = await this.one(id, 'DQ.SIGNAL', name, ...(bytes.length > 0 ? [bytes] : []));
    return reply === null ? null : Number(reply) === 1;
  }

  /** Keeps a value with a job that `pop` returned. False if the token is not current. */
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
    const made = new Waits(() => this.driver(), key, this.guard.log);
    this.waits.set(name, made);
    return made;
  }

  private resultOf(id: Bytes, result: Ended[2]): any {
    return decodedValue(this.codec, result, `the result of ${toText(toBytes(id))}`);
  }
}

const failure = (id: Buffer, outcome: JobFailed['outcome'], reason: Buffer | null) =>
  new JobFailed(toText(id), outcome, reason && String(reason));
