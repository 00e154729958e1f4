// Ids as text, and their checksums.

import { isAscii, isUtf8 } from 'node:buffer';
import { shown } from './format';

/** Text, or bytes. */
export type Bytes = string | Uint8Array;

const ESCAPE = 0xdc00;

/**
 * Ids may hold any bytes. Those that are not UTF-8 become lone surrogates, U+DC80 to U+DCFF, from which `toBytes` makes the
 * same bytes again, as in the libraries of the other languages.
 */
export function toText(raw: Buffer): string {
  if (isUtf8(raw)) return raw.toString();
  let text = '';
  for (let at = 0; at < raw.length;) {
    const size = sequence(raw, at);
    text += size > 0 ? raw.toString('utf8', at, at + size) : String.fromCharCode(ESCAPE + raw[at]!);
    at += size || 1;
  }
  return text;
}

/** Bytes as clients send them with the least work. */
export const asWord = (raw: Buffer): string | Buffer => (isAscii(raw) ? raw.toString('latin1') : raw);

/** The length of the valid UTF-8 sequence at this place; 0 if there is none. */
function sequence(raw: Buffer, at: number): number {
  const lead = raw[at]!;
  const size = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  return isUtf8(raw.subarray(at, at + size)) ? size : 0;
}

export function toBytes(text: Bytes, what = 'an id'): Buffer {
  if (text instanceof Uint8Array) return Buffer.from(text.buffer, text.byteOffset, text.byteLength);
  if (typeof text !== 'string') throw new TypeError(`${what} must be text or bytes, such as '17', not ${shown(text)}`);
  if (!/[\udc80-\udcff]/.test(text)) return Buffer.from(text);
  const parts: Buffer[] = [];
  for (const letter of text) {
    const code = letter.codePointAt(0)!;
    parts.push(code >= 0xdc80 && code <= 0xdcff ? Buffer.of(code - ESCAPE) : Buffer.from(letter));
  }
  return Buffer.concat(parts);
}

/** How many ids an error names. */
const MOST_NAMES = 10;

export function someOf(ids: readonly string[]): string {
  const left = ids.length - MOST_NAMES;
  return ids.slice(0, MOST_NAMES).join(', ') + (left > 0 ? ` and ${left} more` : '');
}

/** Whether the server has refused an AFTER because it does not hold one of its jobs. */
export const isUnheld = ({ message }: Error) => message.includes('AFTER names a job that the queue does not hold');

const CRC_32 = Array.from({ length: 256 }, (_, n) => {
  for (let bit = 0; bit < 8; bit++) n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1;
  return n >>> 0;
});

/** The CRC-32 of zlib, as in all languages: it decides on the shard. */
export function crc32(raw: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of raw) crc = CRC_32[(crc ^ byte) & 0xff]! ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

/** The slot of a key in a cluster. */
export function slotOf(key: Buffer): number {
  const open = key.indexOf('{');
  const close = open < 0 ? -1 : key.indexOf('}', open + 1);
  let crc = 0;
  for (const byte of close > open + 1 ? key.subarray(open + 1, close) : key) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  }
  return crc & 0x3fff;
}
