// Asks why a link gets no jobs, where it has got none for a minute.

import { mayNot } from './fatal';
import { IDLE } from './limits';
import { toText } from './text';
import type { Command } from './wire';

const MOST_KEYS = 100;
const NONE: Command[] = [];
const NONE_READY = new Set(['delayed', 'blocked', 'reserved', 'empty']);

type Row = [code: unknown, number: unknown, until: unknown];

/** What it tells its link's worker. */
interface Teller {
  held(queue: string, why: string): void;
  off(command: string, then: string, error: unknown): void;
}

/** How long a link's fetches have waited in vain. The next one then takes DQ.EXPLAIN along, and delays nothing. */
export class Idle {
  private waitedMs = 0;
  /** In this time without jobs. */
  private isSaid = false;

  private since = 0;
  private keys: readonly Buffer[];

  constructor(
    members: readonly { key: Buffer }[],
    private readonly teller: Teller,
  ) {
    this.keys = members.slice(0, MOST_KEYS).map(({ key }) => key);
  }

  /** The fetch has ended. */
  fetched(isAny: boolean): void {
    this.waitedMs = isAny ? 0 : this.waitedMs + performance.now() - this.since;
    if (isAny) this.isSaid = false;
  }

  /** What the fetch that begins takes along. */
  asks(): Command[] {
    this.since = performance.now();
    if (this.waitedMs < IDLE.afterMs || this.isSaid) return NONE;
    this.waitedMs = 0;
    return this.keys.map((key) => ['DQ.EXPLAIN', key]);
  }

  /** Takes the replies, which come before the fetch's. */
  hear(asked: readonly Command[], replies: readonly Promise<unknown>[]): void {
    asked.forEach(([, key], n) => {
      replies[n]!.then(
        (reply) => this.heard(key as Buffer, reply),
        () => {}, // the fetch meets the same trouble
      );
    });
  }

  private heard(key: Buffer, reply: unknown): void {
    if (reply instanceof Error) {
      if (!mayNot(reply)) return;
      this.keys = [];
      this.teller.off('DQ.EXPLAIN', 'an idle worker cannot say why it gets no jobs', reply);
      return;
    }
    const why = heldBack((reply ?? []) as Row[]);
    if (why === '') return;
    this.isSaid = true;
    this.teller.held(toText(key), why);
  }
}

/** Why jobs that are ready are not delivered; '' if none is, or nothing holds them: this fetch gets them. */
function heldBack(rows: readonly Row[]): string {
  if (rows.some(([code]) => NONE_READY.has(String(code)))) return '';
  return rows
    .filter(([code]) => String(code) !== 'idle')
    .map(shown)
    .join(', ');
}

function shown([code, number, until]: Row): string {
  const text = number === null ? String(code) : `${code} ${number}`;
  return until === null ? text : `${text} for ${Math.max(0, Math.ceil((Number(until) - Date.now()) / 1000))} s`;
}
