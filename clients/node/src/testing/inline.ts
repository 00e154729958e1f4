// A queue without a server: `add` runs the handler at once, whatever the delay.

import { Delivery, Handlers, type Owner } from '../core';
import type { Command } from '../driver';
import { DqError } from '../errors';
import { Handler, type Processor } from '../handler';
import { type Codec, Job } from '../job';
import { Queue } from '../queue';

const LEASE_MS = 60_000;
const NOBODY: Owner = { settle: () => {}, isStale: () => false };

/** Takes the place of `Queue`. What the handler throws, `add` throws. */
export class InlineQueue<T = any> extends Queue<T> {
  /** The jobs that were run. */
  readonly jobs: Job<T>[] = [];
  private readonly handlers: Handlers;

  constructor(
    handlers: Processor<T> | Handler<T> | readonly Handler<T>[],
    options: { name?: string; codec?: Codec<T> } = {},
  ) {
    super('inline:', options.name ?? 'inline', { codec: options.codec });
    this.handlers = new Handlers(
      typeof handlers === 'function' ? [new Handler(handlers)] : ([handlers].flat() as Handler[]),
    );
  }

  protected override async run(calls: readonly Command[]): Promise<unknown[]> {
    const ids: unknown[] = [];
    for (const call of calls) ids.push(await this.handle(call));
    return ids;
  }

  private async handle([command, key, id, payload]: Command): Promise<unknown> {
    if (command !== 'DQ.ADD') throw new DqError(`${command} needs a server: see TestServer`);
    const now = Date.now();
    const row = [id, payload, Buffer.from('1'), 1, now + LEASE_MS, now];
    const delivery = new Delivery(key as Buffer, row, NOBODY);
    const job = (delivery.job = new Job<T>(delivery, this.codec));
    const handler = this.handlers.choose(job);
    if (!handler) throw new DqError(`no handler for jobs of kind ${job.kind}`);
    this.jobs.push(job);
    await handler.call([job]);
    if (delivery.failure) throw delivery.failure.error;
    return id;
  }
}
