// How other jobs ended, for a job that was after them or waited for them.

import { type Codec, decodedValue } from './codec';
import { StepError } from './errors';
import { toBytes, toText } from './text';

/** The server's row: the job's id, how it ended, and its result or the reason why it is dead. */
export type Ended = readonly [id: Buffer, outcome: string | null, value: Buffer | null];

export const endedOf = (rows: readonly (readonly unknown[])[]): Ended[] =>
  rows.map(([id, outcome, value]) => [id as Buffer, outcome === null ? null : String(outcome), value as Buffer | null]);

/** How a job ended that this job was `after`, or waited for. */
export class JobResult<T = unknown> {
  #read: { value: T | null } | null = null;
  #raw: Buffer | null;
  #codec: Codec;

  /** @internal */
  constructor([id, outcome, value]: Ended, codec: Codec) {
    this.id = toText(id);
    this.outcome = outcome as JobResult['outcome'];
    this.#raw = value;
    this.#codec = codec;
  }

  /** The job's id. */
  readonly id: string;
  /** Null if this job was unblocked before the other ended. */
  readonly outcome: 'done' | 'dead' | 'deleted' | 'expired' | null;

  /** The result of a done job; otherwise null. Throws PayloadError if it cannot be read. */
  get value(): T | null {
    if (this.outcome !== 'done') return null;
    this.#read ??= { value: decodedValue(this.#codec, this.#raw, `the result of ${this.id}`) };
    return this.#read.value;
  }

  /** The reason of a dead job's last failure; otherwise null. */
  get reason(): string | null {
    return this.outcome === 'dead' && this.#raw ? this.#raw.toString() : null;
  }
}

export const results = (ended: readonly Ended[], codec: Codec): JobResult[] =>
  ended.map((each) => new JobResult(each, codec));

/** The ends as the value of a step. */
export const writeEnded = (ended: readonly Ended[]): string =>
  JSON.stringify(ended.map(([id, outcome, value]) => [toText(id), outcome, value && value.toString('base64')]));

export function readEnded(step: Buffer, name: string): Ended[] {
  try {
    const rows = JSON.parse(step.toString()) as [string, string | null, string | null][];
    return rows.map(([id, outcome, value]) => [
      toBytes(id),
      outcome === null ? null : String(outcome),
      value === null ? null : Buffer.from(value, 'base64'),
    ]);
  } catch (error) {
    throw new StepError(`the step '${name}' does not hold results`, { cause: error });
  }
}
