// Parts of replies, typed.

import { toText } from './text';
import { asMap } from './wire';

const isNothing = (raw: unknown): raw is null | undefined => raw === null || raw === undefined;

export const maybeText = (raw: unknown): string | null => (isNothing(raw) ? null : String(raw));
export const maybeId = (raw: unknown): string | null => (isNothing(raw) ? null : toText(raw as Buffer));
export const maybeNumber = (raw: unknown): number | null => (isNothing(raw) ? null : Number(raw));

export const stepsOf = (reply: unknown): ReadonlyMap<string, Buffer> =>
  (asMap(reply) ?? new Map()) as ReadonlyMap<string, Buffer>;
