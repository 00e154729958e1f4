// A kind of jobs, declared once: what its jobs hold and come to, and the options that they have by default.

import { Handler, type HandlerOptions, type Processor } from './handler';
import type { Job } from './job';
import { takes } from './mistakes';
import { ADD, type AddOptions, type JobOptions } from './options';
import type { AddAndWaitOptions, WaitOptions } from './outcomes';
import type { Queue } from './queue';
import { shown } from './format';
import type { Bytes } from './text';
import type { Duration } from './times';

/** What jobs of a kind have unless they say otherwise. */
export type KindDefaults = Omit<JobOptions, 'kind' | 'headers'>;
type Rest<O> = Omit<O, 'kind'>;
/** Options of a job that is never refused: its id is made up. */
export type Fresh = { id?: undefined; ifExists?: undefined };

/** What `kind` makes. */
export class Kind<Data, Result = unknown> {
  constructor(
    readonly name: string,
    private readonly defaults: KindDefaults = {},
  ) {
    if (typeof name !== 'string' || name === '') throw new TypeError(`a kind needs a name, not ${shown(name)}`);
    takes(`kind '${name}'`, defaults, ADD as Record<keyof KindDefaults, 1>);
  }

  /** A job for `addMany`, `chain`, `join` and `spawn`. */
  of(data: Data, options: Rest<AddOptions> = {}): { data: Data } & AddOptions {
    return { ...this.options(options), data };
  }

  /** Adds a job, as `queue.add` does. */
  add(queue: Queue<any>, data: Data, options?: Rest<AddOptions> & Fresh): Promise<string>;
  add(queue: Queue<any>, data: Data, options: Rest<AddOptions>): Promise<string | null>;
  add(queue: Queue<any>, data: Data, options: Rest<AddOptions> = {}): Promise<string | null> {
    return queue.add(data, this.options(options));
  }

  /** A request and its reply. */
  addAndWait(queue: Queue<any>, data: Data, options: Rest<AddAndWaitOptions> = {}): Promise<Result | null> {
    return queue.addAndWait<Result>(data, this.options(options));
  }

  /** Waits for the end of such a job, and returns its result. */
  wait(queue: Queue<any>, id: Bytes, timeout?: Duration | null, options?: WaitOptions): Promise<Result | null> {
    return queue.wait<Result>(id, timeout, options);
  }

  /** The result of such a job that is done and kept; else null. */
  result(queue: Queue<any>, id: Bytes): Promise<Result | null> {
    return queue.result<Result>(id);
  }

  /** Its handler, for a worker. */
  handler(processor: (job: Job<Data>) => Result | Promise<Result>, options: Rest<HandlerOptions> = {}): Handler<Data> {
    return new Handler<Data>(processor as Processor<Data>, { ...options, kind: this.name });
  }

  private options<O>(given: O): KindDefaults & O & { kind: string } {
    return { ...this.defaults, ...given, kind: this.name };
  }
}

/**
 * Declares a kind of jobs: `const sendReceipt = kind<Receipt, Sent>('send_receipt', { attempts: 5 })`. Producers
 * `sendReceipt.add(queue, { order: 17 }, { delay: 60_000 })`, workers take `sendReceipt.handler(async (job) => ...)`: both with the
 * types of its payload and of its result.
 */
export function kind<Data, Result = unknown>(name: string, defaults?: KindDefaults): Kind<Data, Result> {
  return new Kind(name, defaults);
}
