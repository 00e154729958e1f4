// Why a queue or a job is not delivered, as DQ.EXPLAIN says it.

import { maybeNumber } from './reading';
import { maybeFromMs } from './times';

/** One reason. */
export interface Explanation {
  /** As in the command reference: `paused`, `rate`, `behind`, ... */
  code: string;
  /** How many, where the code counts something. */
  number: number | null;
  /** When time alone ends it. */
  until: Date | null;
}

export type Row = [code: unknown, number: unknown, until: unknown];

/** In the server's order. */
const OF_QUEUE = 'paused maxreserved delayed blocked reserved empty groups rate fill idle'.split(' ');
const SAY_NO_JOBS = new Set(['paused', 'maxreserved', 'empty']);

const explanation = ([code, number, until]: Row): Explanation => ({
  code: String(code),
  number: maybeNumber(number),
  until: maybeFromMs(until),
});

/** The reasons of all shards, each code once; null if no shard is there. */
export function reasons(replies: unknown[]): Explanation[] | null {
  const found = replies.filter((reply): reply is Row[] => Array.isArray(reply));
  const rows = found.flat().map(explanation);
  if (found.length < 2) return found.length > 0 ? rows : null;
  const isEmpty = rows.every(({ code }) => SAY_NO_JOBS.has(code));
  const codes = OF_QUEUE.filter((code) => rows.some((row) => row.code === code) && (isEmpty || code !== 'empty'));
  return codes.map((code) => addedUp(rows, code));
}

function addedUp(rows: Explanation[], code: string): Explanation {
  const same = rows.filter((row) => row.code === code);
  const numbers = same.flatMap(({ number }) => number ?? []);
  const ends = same.flatMap(({ until }) => until?.getTime() ?? []);
  const number = numbers.length > 0 ? numbers.reduce((sum, each) => sum + each, 0) : null;
  return { code, number, until: ends.length > 0 ? new Date(Math.min(...ends)) : null };
}
