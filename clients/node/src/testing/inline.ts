// A queue without a server: `add` runs the handler at once, whatever the delay.

import type { Codec } from '../codec';
import { DqError } from '../errors';
import { Handler, Handlers, type Processor } from '../handler';
import { Delivery, type Job } from '../job';
import { DEFAULT_TTR_MS } from '../limits';
import { Queue } from '../queue';
import type { Command } from '../wire';

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
    const row = [id, payload, Buffer.from('1'), 1, now + DEFAULT_TTR_MS, now, [DEFAULT_TTR_MS, 0, null]];
    const delivery = new Delivery(key as Buffer, row, this.codec);
    const job: Job<T> = delivery.job;
    const handler = this.handlers.choose(delivery);
    if (!handler) throw new DqError(`no handler for jobs of kind ${job.kind}`);
    this.jobs.push(job);
    await handler.call([job]);
    if (delivery.failure) throw delivery.failure.error;
    return id;
  }
}
