// Codecs for payloads, results and steps, and the envelope of jobs with a kind or headers.

import { isUtf8 } from 'node:buffer';
import { types } from 'node:util';
import { EncodingError, PayloadError } from './errors';
import { hush } from './quiet';
import { shown, textOf } from './format';

export const ENVELOPE_VERSION = 1;

/** Encodes what `queue.add` is given as bytes, and decodes it for `job.data`. */
export interface Codec<T = any> {
  encode(data: T): Uint8Array;
  decode(payload: Buffer): T;
}

/** JSON. Refuses values that JSON.stringify silently turns into null or an empty object. */
function toJson(data: unknown): string {
  const text = JSON.stringify(data ?? null);
  if (text === undefined) throw new TypeError(`JSON cannot hold ${textOf(data)}`);
  if (text.includes('null') || text.includes('{}') || types.isNativeError(data)) JSON.stringify(data, refuse);
  return text;
}

function refuse(name: string, value: unknown): unknown {
  const where = name && ` (${name})`;
  if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError(`JSON cannot hold ${value}${where}`);
  if (types.isPromise(value)) {
    hush(value);
    throw new TypeError(`JSON cannot hold a promise${where}: was an await forgotten?`);
  }
  if (types.isMap(value) || types.isSet(value) || types.isNativeError(value)) {
    throw new TypeError(`JSON cannot hold ${shown(value)}${where}: it would be empty`);
  }
  return value;
}

function fromJson(payload: Buffer): any {
  if (!isUtf8(payload)) throw new SyntaxError('it is not UTF-8');
  return JSON.parse(payload.toString());
}

/** The default: JSON. Bytes are sent as they are. */
export const jsonCodec: Codec = {
  encode: (data) => (data instanceof Uint8Array ? data : Buffer.from(toJson(data))),
  decode: fromJson,
};

/** Bytes in, bytes out. */
export const bytesCodec: Codec<Uint8Array | string> = {
  encode: (data) => (typeof data === 'string' ? Buffer.from(data) : data),
  decode: (payload) => payload,
};

/** Decodes bytes. Whatever the codec throws becomes a PayloadError. */
export function decoded<T>(codec: Codec<T>, bytes: Buffer, what = 'payload'): T {
  try {
    const data = codec.decode(bytes);
    hush(data);
    return data;
  } catch (error) {
    throw new PayloadError(`${what} cannot be decoded: ${textOf(error)}`, { cause: error });
  }
}

/**
 * A result or the value of a step as bytes; empty for null and undefined. If the codec throws, or returns no bytes, throws an
 * error that says what cannot be encoded.
 */
export function encoded(codec: Codec, value: unknown, what: string): Buffer {
  if (value === undefined || value === null) return NOTHING;
  hush(value);
  let bytes: unknown;
  try {
    bytes = codec.encode(value);
    hush(bytes);
    if (bytes instanceof Uint8Array) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  } catch (error) {
    throw new EncodingError(`${what} cannot be encoded: ${textOf(error)}`, { cause: error });
  }
  throw new EncodingError(`${what} cannot be encoded: the codec made ${shown(bytes)} of it, not bytes`);
}

const NOTHING = Buffer.alloc(0);

/** Decodes what `encoded` made. Throws PayloadError. */
export function decodedValue(codec: Codec, bytes: Buffer | null, what: string): any {
  return bytes === null || bytes.length === 0 ? null : decoded(codec, bytes, what);
}

/** What a payload holds. */
export interface Decoded {
  /** Decoded by the queue's codec. Throws PayloadError if it cannot be. */
  readonly data: any;
  readonly kind: string | null;
  readonly headers: Readonly<Record<string, string>>;
}

/** Adds what its payload holds to a record, read when it is asked for. */
export function withDecoded<T extends { payload: Buffer }>(record: T, codec: Codec): T & Decoded {
  let read: Envelope | null | undefined;
  const envelope = () => (read === undefined ? (read = readEnvelope(record.payload)) : read);
  return Object.defineProperties(record, {
    data: { get: () => (envelope() ? envelope()!.data : decoded(codec, record.payload)) },
    kind: { get: () => envelope()?.kind ?? null },
    headers: { get: () => envelope()?.headers ?? {} },
  }) as T & Decoded;
}

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
  return Buffer.from(toJson({ dq: ENVELOPE_VERSION, kind, data: data ?? null, headers: written }));
}

/** The envelope of a payload; null if the payload is not one. */
export function readEnvelope(payload: Buffer): Envelope | null {
  if (payload[0] !== 0x7b || !payload.includes('"dq"') || !isUtf8(payload)) return null;
  let value: any;
  try {
    value = JSON.parse(payload.toString());
  } catch {
    return null;
  }
  const { dq: version, kind = null, data, headers = {} } = value;
  if (!Number.isInteger(version) || !('data' in value) || !('kind' in value || 'headers' in value)) return null;
  if (kind !== null && typeof kind !== 'string') return null;
  const isMap = headers !== null && typeof headers === 'object' && !Array.isArray(headers);
  return { version, kind, data, headers: isMap ? headers : {} };
}
