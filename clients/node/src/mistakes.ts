// Mistakes of callers, and the messages that say what to write instead.

import { shown } from './format';

/** Names that other libraries have for options. */
const ALSO_CALLED = new Map([
  ['jobId', ['id']],
  ['maxAttempts', ['attempts']],
  ['retries', ['attempts']],
  ['runAt', ['at']],
  ['timeout', ['timeout', 'lease', 'ttr']],
  ['timezone', ['tz']],
]);

/** Refuses what is not an object of options, and names that `names` lacks; the compiler checks that it has them all. */
export function takes<T extends object>(call: string, given: T, names: Record<keyof T, 1>): T {
  const all = Object.keys(names);
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    const example = all[0] === undefined ? '{}' : `{ ${all[0]}: ... }`;
    throw new TypeError(`${call} takes its options as an object, ${example}, not ${shown(given)}`);
  }
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(names, name) || given[name as keyof T] === undefined) continue;
    const meant = closest(name, all);
    const hint = meant === undefined ? '' : `did you mean '${meant}'? `;
    throw new TypeError(`${call} has no option '${name}': ${hint}Its options are ${all.join(', ')}`);
  }
  return given;
}

/** How much of a name that came with a job is compared and shown: it may be as long as a payload. */
export const MOST_SHOWN = 100;

/** What the name may be a slip of. */
export function closest(name: string, all: readonly string[]): string | undefined {
  const known = ALSO_CALLED.get(name)?.find((other) => all.includes(other));
  if (known !== undefined) return known;
  let least = Math.max(1, Math.floor(name.length / 3)) + 1;
  let best: string | undefined;
  const given = name.toLowerCase();
  for (const other of all) {
    if (Math.abs(other.length - given.length) >= least) continue; // their distance is that, or more
    const far = distance(given, other.toLowerCase());
    if (far < least) [best, least] = [other, far];
  }
  return best;
}

/** The Levenshtein distance, with two swapped letters as one mistake. */
function distance(one: string, other: string): number {
  const rows = [Array.from({ length: other.length + 1 }, (_, n) => n)];
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const same = one[i - 1] === other[j - 1] ? 0 : 1;
      row[j] = Math.min(rows[i - 1]![j]! + 1, row[j - 1]! + 1, rows[i - 1]![j - 1]! + same);
      const isSwapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      if (isSwapped) row[j] = Math.min(row[j]!, rows[i - 2]![j - 2]! + 1);
    }
    rows.push(row);
  }
  return rows[one.length]![other.length]!;
}

/** Checks that a backoff is a list, even for one wait that repeats. */
export function steps(backoff: readonly number[]): readonly number[] {
  if (Array.isArray(backoff)) return backoff;
  throw new TypeError(`backoff must be an array of waits in milliseconds, such as [60_000], not ${shown(backoff)}`);
}

/** Requires an id: without one, each start would add another rule. */
export function ruled<T extends { id: unknown }>(call: string, options: T | undefined): T {
  const early = ['delay', 'at'].find((name) => options?.[name as keyof T] !== undefined);
  if (early) throw new TypeError(`${call} takes no ${early}: its rule says when it is due (\`first\`, for every)`);
  if (options?.id !== undefined && options.id !== null) return options;
  throw new TypeError(`${call} needs an id in its options, as { id: 'report' }: said again, the same rule goes on`);
}
