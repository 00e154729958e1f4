// Which link fetches next, if several share the places for jobs, and when none does, without I/O, timers or a clock.
//
// A fetch that waits holds places that ready jobs of another link may need, so it can be recalled.

import { LONGEST_ISOLATION_MS, SHORTEST_ISOLATION_MS } from './limits';

/**
 * How long a link waits for its next turn if its fetch was recalled and found nothing. Also how long a fetch waits that cannot
 * be recalled.
 */
export const TURN_MS = 250;
/** How long a fetch may wait before it can be recalled; less with many links, so that one with jobs has half of the time. */
export const HOLD_MS = 25;
export const holdMs = (links: number) => Math.min(HOLD_MS, TURN_MS / (2 * links));

export class LinkScheduler<Link> {
  /** When each link that wants to fetch has its turn. */
  private readonly due = new Map<Link, number>();
  /** When each link that fetches began, or was last recalled. */
  private readonly out = new Map<Link, number>();
  private readonly recalled = new Set<Link>();
  /** The earliest next turn of links whose fetch was recalled and found nothing. */
  private readonly later = new Map<Link, number>();

  constructor(private readonly links: () => number) {}

  want(link: Link, nowMs: number): void {
    this.due.set(link, Math.max(nowMs, this.later.get(link) ?? nowMs));
  }

  /** The link whose turn it is; null if it is no link's turn yet. */
  first(nowMs: number): Link | null {
    const first = least(this.due);
    return first && first[1] <= nowMs ? first[0] : null;
  }

  begin(link: Link, nowMs: number): void {
    this.due.delete(link);
    this.later.delete(link);
    this.out.set(link, nowMs);
  }

  end(link: Link, nowMs: number, isEmpty: boolean): void {
    this.out.delete(link);
    if (this.recalled.delete(link) && isEmpty) this.later.set(link, nowMs + TURN_MS);
  }

  /** The link whose fetch must end because another link has its turn and no place is free; null if none must. */
  recall(nowMs: number): Link | null {
    const late = least(this.out);
    if (!late || nowMs < this.recallAt()) return null;
    this.recalled.add(late[0]);
    this.out.set(late[0], nowMs);
    return late[0];
  }

  /** When to look again at the latest, if no link may fetch now. */
  lookAt(nowMs: number): number {
    const due = least(this.due)?.[1] ?? Infinity;
    return due > nowMs ? due : this.recallAt();
  }

  /** When a fetch may be recalled. One at a time: a link that was recalled has time to return. */
  private recallAt(): number {
    const waiting = least(this.out)?.[1] ?? Infinity;
    return Math.max(waiting, ...[...this.recalled].map((link) => this.out.get(link)!)) + holdMs(this.links());
  }
}

/**
 * When nothing is fetched until nothing is in hand, and then one job, as one may have ended its workers.
 *
 * In hand, that job would lose its last attempt with the next one that ends the worker. So it waits in the server, where an
 * idle worker finds it at once. No worker holds it, so no two can wait for each other.
 *
 * It lasts for `patienceMs` at most, for a handler that takes longer must not keep all the others idle. For as long other
 * jobs are fetched then, and that one is delayed: it has the next try.
 */
export class Isolation {
  private readonly patienceMs: number;
  private until = -Infinity;

  constructor(patienceMs: number) {
    this.patienceMs = Math.min(Math.max(patienceMs, SHORTEST_ISOLATION_MS), LONGEST_ISOLATION_MS);
  }

  /** A job that is to run alone is given back, as others are in hand. Returns by how much it is delayed. */
  want(nowMs: number): number {
    if (nowMs >= this.until + this.patienceMs) this.until = nowMs + this.patienceMs;
    return this.isOn(nowMs) ? 0 : this.until + this.patienceMs - nowMs;
  }

  isOn(nowMs: number): boolean {
    return nowMs < this.until;
  }

  /** When it ends, if it is on. */
  lookAt(nowMs: number): number {
    return this.isOn(nowMs) ? this.until : Infinity;
  }

  end(): void {
    this.until = -Infinity;
  }
}

function least<Link>(times: ReadonlyMap<Link, number>): readonly [Link, number] | null {
  let found: readonly [Link, number] | null = null;
  for (const each of times) if (!found || each[1] < found[1]) found = each;
  return found;
}
