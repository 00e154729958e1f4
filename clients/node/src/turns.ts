// Which link fetches next, where several share what may be in hand; without I/O, timers or a clock.
//
// A fetch that waits holds places that ready jobs of another link may need. So it can be recalled.

/** How much later the turn of a link comes whose fetch was recalled; and how long one waits that cannot be recalled. */
export const TURN_MS = 250;
/** How long a fetch may wait whatever others want; of many links less, so that one with jobs has half of the time. */
export const HOLD_MS = 25;
export const holdMs = (links: number) => Math.min(HOLD_MS, TURN_MS / (2 * links));

export class Turns<Link> {
  /** When the turn comes of those that want to fetch. */
  private readonly due = new Map<Link, number>();
  /** Since when others fetch, or were last recalled. */
  private readonly out = new Map<Link, number>();
  private readonly recalled = new Set<Link>();
  /** No earlier, of those whose fetch was recalled. */
  private readonly later = new Map<Link, number>();

  constructor(private readonly links: () => number) {}

  want(link: Link, nowMs: number): void {
    this.due.set(link, Math.max(nowMs, this.later.get(link) ?? nowMs));
  }

  /** Whose turn it is. */
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

  /** Whose fetch is to end, as it is another link's turn and no place is left. */
  recall(nowMs: number): Link | null {
    const late = least(this.out);
    if (!late || nowMs < this.recallAt()) return null;
    this.recalled.add(late[0]);
    this.out.set(late[0], nowMs);
    return late[0];
  }

  /** When to look again at the latest, where nobody may begin now. */
  lookAt(nowMs: number): number {
    const due = least(this.due)?.[1] ?? Infinity;
    return due > nowMs ? due : this.recallAt();
  }

  /** One at a time: who was recalled last has time to come back. */
  private recallAt(): number {
    const waiting = least(this.out)?.[1] ?? Infinity;
    return Math.max(waiting, ...[...this.recalled].map((link) => this.out.get(link)!)) + holdMs(this.links());
  }
}

function least<Link>(times: ReadonlyMap<Link, number>): readonly [Link, number] | null {
  let found: readonly [Link, number] | null = null;
  for (const each of times) if (!found || each[1] < found[1]) found = each;
  return found;
}
