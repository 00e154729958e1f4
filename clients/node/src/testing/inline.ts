// A queue without a server: `add` runs the handler at once, whatever the delay.

import { type Codec, encoded } from '../codec';
import { Delivery, type Desk, type Part, type Suspension } from '../delivery';
import { DqError, TimedOut } from '../errors';
import { Handler, Handlers, type Processor } from '../handler';
import { type Job, jobOf } from '../job';
import { DEFAULT_TTR_MS } from '../limits';
import { Queue } from '../queue';
import type { Ended } from '../results';
import { textOf } from '../shown';
import { type Bytes, toBytes, toText } from '../text';
import type { Command } from '../wire';

/** A job that was added. */
interface Entry {
  key: Buffer;
  id: Buffer;
  payload: Buffer;
  steps: Map<string, Buffer>;
  results: Ended[];
  /** Null until the job has ended. */
  outcome: 'done' | 'dead' | null;
  value: Buffer | null;
  error: unknown;
  /** What the job waits for: this signal, or the ends of these jobs. */
  signal: string | null;
  after: readonly Buffer[];
}

const nameOf = (id: Buffer) => id.toString('latin1');

/**
 * Takes the place of `Queue`: `add` runs the handler, and throws what the handler throws. Sleeps are over at once; a job that
 * waits for a signal goes on in `signal`.
 */
export class InlineQueue<T = any> extends Queue<T> implements Desk {
  /** The jobs that were run, each as in its last attempt. */
  readonly jobs: Job<T>[] = [];
  private readonly handlers: Handlers;
  private readonly entries = new Map<string, Entry>();

  constructor(
    handlers: Processor<T> | Handler<T> | readonly Handler<T>[],
    options: { name?: string; codec?: Codec<T> } = {},
  ) {
    super('inline:', options.name ?? 'inline', { codec: options.codec });
    this.handlers = new Handlers(
      typeof handlers === 'function' ? [new Handler(handlers)] : ([handlers].flat() as Handler[]),
    );
  }

  /** The result of a job that has ended. Throws TimedOut if the job still waits. */
  protected override async waited(id: Bytes): Promise<any> {
    const entry = this.entries.get(nameOf(toBytes(id)));
    if (entry && !entry.outcome)
      throw new TimedOut(`job '${toText(entry.id)}' waits for a signal or other jobs`, toText(entry.id), 0);
    return this.result(id);
  }

  protected override async run(calls: readonly Command[]): Promise<unknown[]> {
    const replies: unknown[] = [];
    for (const call of calls) {
      replies.push(await this.carryOut(call));
      const [, , id] = call;
      const error = call[0] === 'DQ.ADD' && this.entries.get(nameOf(id as Buffer))?.error;
      if (error) throw (error as { thrown: unknown }).thrown;
    }
    return replies;
  }

  protected override together(_: Buffer, calls: readonly Command[]): Promise<unknown[]> {
    return this.run(calls);
  }

  private async carryOut([command, key, ...words]: Command): Promise<unknown> {
    const [id, ...rest] = words as Buffer[];
    switch (command) {
      case 'DQ.ADD':
        return this.enter(key as Buffer, id!, rest);
      case 'DQ.MADD': {
        const pairs = rest.slice(0, 2 * Number(id));
        const calls = Array.from({ length: Number(id) }, (_, n): Command => [
          'DQ.ADD',
          key!,
          ...pairs.slice(2 * n, 2 * n + 2),
        ]);
        return this.run(calls);
      }
      case 'DQ.GET':
        return this.shown(this.entries.get(nameOf(id!)));
      case 'DQ.DEL':
        // [UNRESERVED] IDS n id ...: nothing is reserved here.
        return words.slice(words.indexOf('IDS') + 2).filter((each) => this.entries.delete(nameOf(each as Buffer)))
          .length;
      case 'DQ.SIGNAL':
        return this.give(this.entries.get(nameOf(id!)), String(rest[0]), rest[1] ?? Buffer.alloc(0));
      default:
        throw new DqError(`${command} needs a server: see TestServer`);
    }
  }

  private shown(entry: Entry | undefined): unknown {
    if (!entry) return null;
    const value = entry.outcome === 'done' ? { result: entry.value } : { reason: entry.value };
    return { state: entry.outcome ?? 'delayed', result: null, ...value };
  }

  private async enter(key: Buffer, id: Buffer, [payload, ...words]: Buffer[]): Promise<unknown> {
    const earlier = this.entries.get(nameOf(id));
    if (earlier && earlier.outcome !== 'dead') return null;
    // A label may read AFTER, too.
    const at = words.findIndex((word, n) => String(word) === 'AFTER' && /^\d+$/.test(String(words[n + 1])));
    const after = at < 0 ? [] : words.slice(at + 2, at + 2 + Number(words[at + 1]));
    const fresh = { steps: new Map(), results: [], outcome: null, value: null, error: null, signal: null, after };
    const entry: Entry = { key, id, payload: payload!, ...fresh };
    this.entries.set(nameOf(id), entry);
    await this.goOn(entry);
    return id;
  }

  private async give(entry: Entry | undefined, name: string, value: Buffer): Promise<number | null> {
    if (!entry || entry.outcome) return null;
    if (entry.steps.has(name)) return 0;
    entry.steps.set(name, value);
    if (entry.signal === name) await this.goOn(entry);
    return 1;
  }

  // --- Attempts

  /** Runs attempts until the job has ended, or waits. */
  private async goOn(entry: Entry): Promise<void> {
    while (!entry.outcome && this.isReady(entry)) {
      const suspension = await this.attempt(entry);
      if (suspension) await this.suspend(entry, suspension);
    }
    if (!entry.outcome) return;
    for (const other of [...this.entries.values()]) {
      if (other.after.some((id) => id.equals(entry.id))) await this.goOn(other);
    }
  }

  private isReady(entry: Entry): boolean {
    const others = entry.after.map((id) => this.entries.get(nameOf(id)));
    if (others.some((other) => other && !other.outcome)) return false;
    if (entry.signal !== null && !entry.steps.has(entry.signal)) return false;
    if (entry.after.length > 0) {
      entry.results = entry.after.map((id, n) => [id, others[n]?.outcome ?? 'deleted', others[n]?.value ?? null]);
    }
    entry.after = [];
    entry.signal = null;
    return true;
  }

  private async suspend(entry: Entry, suspension: Suspension): Promise<void> {
    if (suspension.for === 'sleep') {
      entry.steps.set(suspension.name, Buffer.alloc(0));
    } else if (suspension.for === 'signal') {
      entry.signal = suspension.name;
    } else {
      for (const add of suspension.adds) await this.carryOut(add);
      entry.after = suspension.ids;
    }
  }

  private async attempt(entry: Entry): Promise<Suspension | null> {
    const { key, id, payload } = entry;
    const now = Date.now();
    const terms = [DEFAULT_TTR_MS, 0, null];
    const row = [id, payload, Buffer.from('1'), 1, now + DEFAULT_TTR_MS, now, entry.results, [], terms] as const;
    const delivery = new Delivery(key, row, entry.steps, this.codec, this);
    const job: Job<T> = jobOf(delivery);
    const handler = this.handlers.choose(delivery);
    if (!handler) throw new DqError(`no handler for jobs of kind ${job.kind}`);
    delivery.handlerAttempts = handler.attempts;
    const before = this.jobs.findIndex((other) => other.id === job.id);
    if (before >= 0) this.jobs.splice(before, 1);
    this.jobs.push(job);
    try {
      const returned = await handler.call([job]);
      const end = delivery.said ?? { value: handler.batch > 0 ? null : returned };
      if (delivery.suspension) return delivery.suspension;
      if ('error' in end) throw end.error;
      entry.value = encoded(this.codec, end.value, 'result');
      entry.outcome = 'done';
    } catch (error) {
      if (delivery.suspension) return delivery.suspension;
      entry.outcome = 'dead';
      entry.value = Buffer.from(textOf(error));
      entry.error = { thrown: error };
    }
    return null;
  }

  // --- Requests of handlers

  async ask(delivery: Delivery, commands: readonly Command[]): Promise<unknown[]> {
    return commands.map(([command, , , , name, value]) => {
      if (command === 'DQ.TOUCH') return 1; // sets a cost, but an inline queue has no rates
      if (command !== 'DQ.STEP') throw new DqError(`${command} needs a server: see TestServer`);
      delivery.steps.set(String(name), Buffer.from(value as Buffer));
      return 1;
    });
  }

  lose(): void {}

  report(): void {}

  idLike({ key }: Delivery, id: string): Buffer {
    return this.idOf(key, id);
  }

  adding({ key }: Delivery, parts: readonly Part[]): Promise<Command[]> {
    return this.commandsOf(key, parts);
  }
}
