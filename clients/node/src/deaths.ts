// Which jobs have died, without I/O: those of which an answer said so, and those that time or another job ended.
//
// The second are found at the server, by each worker that has the hook. All wait for it in one short list of the worker, by
// their ids: payloads may be large.

import type { Delivery } from './delivery';
import type { Command } from './wire';

/** How many deaths wait for the hook. */
export const MOST = 1000;
/** How many deaths one question finds. With less room in the list none is asked. */
export const PAGE = 100;
/** How many deaths of a queue are remembered, so that the hook is called once for each. */
const KNOWN = 10_000;
/** From so much on a server's clock that is behind was set back. */
const SET_BACK_MS = 1000;
/** Reasons of the server. All others were said in a NACK, whose sender heard of the death. */
const BY_TIME = /^(lease ended|after .*: (dead|deleted|expired))$/s;

export interface Death {
  of: Deaths;
  /** The first of them that is dead is the job. */
  ids: readonly Buffer[];
  /** When it died, of one that was found; an answer does not say. */
  at: number | null;
  /** It counts whatever it died of. Others count if no answer can have told of them. */
  isAny: boolean;
}

/** The list of the deaths that wait. */
export interface Waiting {
  readonly room: number;
  /** Returns whether there was room. */
  add(death: Death): boolean;
}

type Fields = Map<string, unknown> | null;
type Row = readonly [id: Buffer, payload: unknown, at: unknown];

/** Those of one queue, or of one of its shards. */
export class Deaths {
  /** When to ask again. */
  private lookAt = 0;
  /** Since when to look: before the last look began, as a server that has many deaths finds some of them late. */
  private fromMs = 0;
  private isLooking = false;
  /** When the last look began, by the server's clock and by ours. At first: not yet. */
  private beganMs = 0;
  private began = Infinity;
  /** How far this look has come: the instant, and how many deaths at it. */
  private atMs = 0;
  private past = 0;
  /** A death of which an answer told found no room: the next look, or this one, is for those, too. */
  private isShort = false;
  private takesAll = false;
  /** When those died that were found, and those that the hook was called for. */
  private readonly found = new Map<string, number>();
  private readonly called = new Map<string, number>();

  constructor(
    readonly key: Buffer,
    private readonly everyMs: number,
    private readonly waiting: Waiting,
  ) {}

  get nextAt(): number {
    return this.waiting.room >= PAGE ? this.lookAt : Infinity;
  }

  /** An answer said that the job is dead. An occurrence of a recurring one is a dead job of its own. */
  answered({ id, dueMs }: Delivery): void {
    const ids = [Buffer.concat([id, Buffer.from(`@${dueMs}`)]), id];
    if (this.waiting.add({ of: this, ids, at: null, isAny: true })) return;
    this.isShort = true;
    this.again();
  }

  /** What to ask the server, again and again until there is nothing. */
  asks(now: number): Command | null {
    if (now < this.nextAt) return null;
    if (!this.isLooking) return ['TIME'];
    return ['DQ.PEEK', this.key, 'DEAD', 'FROM', this.atMs, 'COUNT', PAGE + this.past, 'PREFIX', 0];
  }

  /** Takes the server's time, or deaths. */
  heard(reply: unknown, now: number): void {
    if (this.isLooking) this.find(reply as Row[], now);
    else this.begin(reply as number, now);
  }

  /** The server refuses to tell: nothing more is looked for. */
  refused(): void {
    this.lookAt = Infinity;
  }

  /** Looks again at once. */
  again(): void {
    if (this.lookAt < Infinity) this.lookAt = 0;
  }

  private begin(nowMs: number, now: number): void {
    if (this.began === Infinity) {
      this.fromMs = nowMs;
    } else {
      const behindMs = this.beganMs + Math.round(now - this.began) - nowMs;
      // The server's clock was set back, as by a failover: by this one, the last look began earlier.
      const isSetBack = behindMs > SET_BACK_MS || nowMs < this.fromMs;
      if (isSetBack) this.fromMs = Math.max(0, Math.min(this.fromMs, this.beganMs - Math.max(0, behindMs)));
    }
    [this.beganMs, this.began, this.isLooking] = [nowMs, now, true];
    [this.atMs, this.past] = [this.fromMs, 0];
    this.takesAll = this.isShort;
    this.isShort = false;
  }

  /** Takes the next deaths, as many as there is room for. */
  private find(rows: readonly Row[], now: number): void {
    const isAll = rows.length < PAGE + this.past;
    this.past = 0;
    for (const [id, , died] of rows) {
      const [name, at] = [id.toString('latin1'), Number(died)];
      if (this.found.get(name) !== at) {
        if (!this.waiting.add({ of: this, ids: [id], at, isAny: this.takesAll })) return;
        this.found.set(name, at);
      }
      this.past = at === this.atMs ? this.past + 1 : 1;
      this.atMs = at;
    }
    this.forget();
    if (!isAll) return;
    this.isLooking = false;
    this.lookAt = this.isShort ? 0 : now + this.everyMs;
    this.fromMs = Math.max(this.fromMs, this.beganMs - this.everyMs);
  }

  /** Forgets what no look asks for, and the oldest of too many: the next look begins after them. */
  private forget(): void {
    for (const known of [this.found, this.called]) {
      if (known.size > KNOWN) {
        const times = [...known.values()].sort((one, other) => one - other);
        this.fromMs = Math.max(this.fromMs, times[times.length - KNOWN / 2]!);
      }
      for (const [name, at] of known) if (at < this.fromMs) known.delete(name);
    }
  }

  /** Reads the job when the hook is about to be called. Null: it is dead no more, or the hook was called. */
  async record(
    { ids, at, isAny }: Death,
    get: (id: Buffer, ...rest: (string | number)[]) => Promise<Fields>,
  ): Promise<Fields> {
    const [first] = ids;
    if (at !== null && this.called.get(first!.toString('latin1')) === at) return null;
    if (!isAny) {
      const dead = deadOf(await get(first!, 'PREFIX', 0));
      if (!BY_TIME.test(String(dead?.get('reason')))) return null;
    }
    for (const id of ids) {
      const dead = deadOf(await get(id));
      if (!dead) continue;
      const [name, failed] = [id.toString('latin1'), Number(dead.get('failed') ?? 0)];
      if (this.called.get(name) === failed) return null;
      this.called.set(name, failed);
      return dead;
    }
    return null;
  }
}

const deadOf = (job: Fields): Fields => (String(job?.get('state')) === 'dead' ? job : null);
