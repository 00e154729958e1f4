// A job as a handler sees it, and how its payload is written.

import { isUtf8 } from 'node:buffer';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Delivery } from './core';
import { Cancelled, PayloadError } from './errors';
import { fromMs, maybeFromMs, type Duration } from './times';
import { toText } from './text';

export const ENVELOPE_VERSION = 1;

/** Makes bytes of what `queue.add` is given, and the other way round in `job.data`. */
export interface Codec<T = any> {
  encode(data: T): Uint8Array;
  decode(payload: Buffer): T;
}

/** The default: JSON. Bytes are sent as they are. */
export const jsonCodec: Codec = {
  encode(data) {
    if (data instanceof Uint8Array) return data;
    const text = JSON.stringify(data ?? null);
    if (text === undefined) throw new TypeError(`JSON cannot hold ${String(data)}`);
    return Buffer.from(text);
  },
  decode(payload) {
    try {
      if (!isUtf8(payload)) throw new SyntaxError('it is not UTF-8');
      return JSON.parse(payload.toString());
    } catch (error) {
      throw new PayloadError(`the payload is not JSON: ${(error as Error).message}`, { cause: error });
    }
  },
};

/** Bytes in, bytes out. */
export const bytesCodec: Codec<Uint8Array | string> = {
  encode: (data) => (typeof data === 'string' ? Buffer.from(data) : data),
  decode: (payload) => payload,
};

/** A payload with a kind and headers: `{"dq":1,"kind":...,"data":...,"headers":{...}}`. */
export interface Envelope {
  readonly version: number;
  readonly kind: string | null;
  readonly data: unknown;
  readonly headers: Readonly<Record<string, string>>;
}

export function writeEnvelope(data: unknown, kind?: string, headers?: Record<string, string>): Buffer {
  if (data instanceof Uint8Array)
    throw new TypeError('data of a job with a kind or headers must be what JSON can hold');
  const written = headers && Object.keys(headers).length > 0 ? headers : undefined;
  return Buffer.from(JSON.stringify({ dq: ENVELOPE_VERSION, kind, data: data ?? null, headers: written }));
}

/** Null where the payload is no envelope. */
export function readEnvelope(payload: Buffer): Envelope | null {
  if (payload[0] !== 0x7b || !payload.includes('"dq"') || !isUtf8(payload)) return null;
  let value: any;
  try {
    value = JSON.parse(payload.toString());
  } catch {
    return null;
  }
  if (!Number.isInteger(value.dq) || !('data' in value) || !('kind' in value || 'headers' in value)) return null;
  const headers = value.headers && typeof value.headers === 'object' && !Array.isArray(value.headers);
  return { version: value.dq, kind: value.kind ?? null, data: value.data, headers: headers ? value.headers : {} };
}

/** One delivery of a job. */
export class Job<T = any> {
  #delivery: Delivery;
  #codec: Codec<T>;
  #envelope: Envelope | null | undefined;
  #data: T | undefined;
  #isRead = false;
  #why: 'lost' | 'stopping' | null = null;
  #told: AbortController | undefined;

  /** @internal */
  constructor(delivery: Delivery, codec: Codec<T>) {
    this.#delivery = delivery;
    this.#codec = codec;
  }

  /** The job's id. Bytes that are not UTF-8 are lone surrogates. */
  get id(): string {
    return toText(this.#delivery.id);
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
    if (this.#envelope === undefined) this.#envelope = readEnvelope(this.#delivery.payload);
    return this.#envelope;
  }

  get kind(): string | null {
    return this.envelope?.kind ?? null;
  }

  get headers(): Readonly<Record<string, string>> {
    return this.envelope?.headers ?? {};
  }

  /** What was added, as the queue's codec reads it. */
  get data(): T {
    if (!this.#isRead) {
      this.#data = this.envelope ? (this.envelope.data as T) : this.#codec.decode(this.#delivery.payload);
      this.#isRead = true;
    }
    return this.#data as T;
  }

  /** Aborts once the job was lost or the worker stops: for `fetch`, database drivers, timers. */
  get signal(): AbortSignal {
    if (!this.#told) {
      this.#told = new AbortController();
      if (this.#why) this.#told.abort(new Cancelled(this.#why));
    }
    return this.#told.signal;
  }

  /** Another worker may have the job: stop, the end of this handler will not count. */
  get lost(): boolean {
    return this.#why === 'lost';
  }

  /** The job was lost, or the worker stops and the handler's time to finish is over. */
  get cancelled(): boolean {
    return this.#why !== null;
  }

  /** Throws `Cancelled` where `cancelled`: for long handlers, between two steps. */
  check(): void {
    if (this.#why) throw new Cancelled(this.#why);
  }

  /** Waits; throws `Cancelled` at once when `cancelled`. */
  async sleep(duration: Duration): Promise<void> {
    await sleep(duration, undefined, { signal: this.signal }).catch(() => {});
    this.check();
  }

  /** In a batch: this one job failed (or is retried, snoozed, given up), and the others did not. */
  fail(error: unknown): void {
    this.#delivery.failure = { error };
  }

  /** @internal */
  tell(why: 'lost' | 'stopping'): void {
    this.#why ??= why;
    this.#told?.abort(new Cancelled(this.#why));
  }
}
