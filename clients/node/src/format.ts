// Values as text. Nothing here throws, whatever a getter, a proxy or a toString does.

import { inspect } from 'node:util';
import { REASON_BYTES } from './limits';
import { hush } from './quiet';

function tried<T>(read: () => T, otherwise: (error: unknown) => T): T {
  try {
    return read();
  } catch (error) {
    return otherwise(error);
  }
}

const isError = (value: unknown): value is Error =>
  tried(
    () => value instanceof Error,
    () => false,
  );

/** The type's name. For `class Declined extends Error {}` it is the class's name, whatever `name` is. */
export function typeOf(value: unknown): string {
  if (!isError(value)) return value === null ? 'null' : typeof value;
  const name = tried(
    () => String(value.name),
    () => '',
  );
  if (name && name !== 'Error') return name;
  return (
    tried(
      () => String(value.constructor.name),
      () => '',
    ) || 'Error'
  );
}

/** An error's type and message, or any other value as text. */
export function textOf(value: unknown): string {
  hush(value);
  const text = tried(
    () => (isError(value) ? ofError(value) : ofOther(value)),
    (why) => `${typeOf(value)} (no text: ${typeOf(why)})`,
  );
  return text.slice(0, REASON_BYTES);
}

function ofError(error: Error): string {
  const { message } = error;
  return message ? `${typeOf(error)}: ${String(message)}` : typeOf(error);
}

function ofOther(value: unknown): string {
  const text = String(value);
  return text.startsWith('[object ')
    ? inspect(value, { depth: 1, breakLength: Infinity, maxArrayLength: 10, maxStringLength: REASON_BYTES })
    : text;
}

const STACK_CHARS = 8192;

/** An error's stack if it has one, else its text. */
export function stackOf(value: unknown): string {
  const stack = isError(value)
    ? tried<unknown>(
        () => value.stack,
        () => null,
      )
    : null;
  return typeof stack === 'string' && stack !== '' ? withoutOwn(stack.slice(0, STACK_CHARS)) : textOf(value);
}

/** A stack with one frame of this library at most. */
function withoutOwn(stack: string): string {
  let own = 0;
  return stack
    .split('\n')
    .filter((line) => !line.startsWith('    at ') || !line.includes(__dirname) || own++ === 0)
    .join('\n');
}

const SHOWN_CHARS = 200;
const SHOWN_DEPTH = 2;
const SHOWN_PARTS = 10;

/** A value for use in a sentence. */
export function shown(value: unknown, depth = 0): string {
  hush(value);
  return tried(
    () => {
      if (typeof value === 'string') return `'${value.slice(0, SHOWN_CHARS)}'`;
      if (Array.isArray(value)) {
        if (depth === SHOWN_DEPTH) return '[...]';
        const parts = value.slice(0, SHOWN_PARTS).map((part) => shown(part, depth + 1));
        return `[${parts.join(', ')}${value.length > SHOWN_PARTS ? ', ...' : ''}]`;
      }
      if (value instanceof Date || typeof value !== 'object' || value === null)
        return String(value).slice(0, SHOWN_CHARS);
      return `an object of ${(value as object).constructor?.name ?? 'no class'}`;
    },
    () => `a value of type ${typeof value}`,
  );
}

/** Text as UTF-8, cut to what the server keeps, in whole characters. */
export function bytesOf(text: string): Buffer {
  const bytes = Buffer.from(text.slice(0, REASON_BYTES));
  let end = Math.min(bytes.length, REASON_BYTES);
  while (end < bytes.length && (bytes[end]! & 0xc0) === 0x80) end--;
  return bytes.subarray(0, end);
}
