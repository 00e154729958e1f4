// Which jobs wait for a handler, which ones run, and how many more may be fetched.

import { Bag } from './bag';
import type { Boss } from './boss';
import * as core from './core';
import type { DeadHook } from './deadhook';
import type { Delivery } from './delivery';
import type { ConfigurationError } from './errors';
import { fatal } from './fatal';
import type { Guard } from './guard';
import type { Handlers } from './handler';
import { handle, type Turn } from './handling';
import { jobOf } from './job';
import type { Link } from './link';
import { ALONE_AGAIN_MS, MOST_HINTS } from './limits';
import { stackOf, textOf } from './format';
import { Isolation, LinkScheduler } from './scheduler';
import { closest, MOST_SHOWN } from './mistakes';
import { Bell, nowMs } from './waiting';
import type { WorkerSettings } from './worker-options';

/** Whether it is known that its lease is live. */
const isSure = ({ delivery }: Turn) => !delivery.isDoubtful;

export class WorkerPool implements Boss<Link> {
  /** The worker stops: nothing more is fetched. */
  isDraining = false;
  /** How many jobs were given back. */
  returned = 0;
  /** An error that waiting does not fix. */
  failure: ConfigurationError | null = null;
  /** How much longer a fetch waits, so that few end before their batch is full. */
  fillMs = 0;
  /** Null if no hook wants to know of deaths. */
  deadHook: DeadHook | null = null;
  /** For how long the event loop has just been blocked, at least. */
  lateMs: () => number = () => 0;
  private readonly running = new Bag<Turn>();
  /** How many handlers run. */
  private handling = 0;
  private readonly awaiting: (() => void)[] = [];
  private readonly resting = new Set<Bell>();
  private readonly claims = new Map<Link, (claim: number) => void>();
  private readonly scheduler = new LinkScheduler<Link>(() => this.links().length);
  private timer: NodeJS.Timeout | undefined;
  private backlog: Turn[] = [];
  private claimed = 0;
  /** Jobs at their last attempt: the server is asked how the one before ended. */
  private readonly suspects = new Set<Turn>();
  /** A job that may have ended its workers, and will run alone; one that does. */
  private killer: Turn | null = null;
  private alone: Turn | null = null;
  /** Such jobs that were given back, until the server has confirmed it. */
  private returning: Turn[] = [];
  private readonly isolation: Isolation;
  private again: NodeJS.Timeout | undefined;
  private readonly saidOff = new Set<string>();
  /** By kinds without a handler: to compare one with all others takes long. */
  private readonly hints = new Map<string, string>();
  private troubleSaid = '';

  constructor(
    private readonly settings: WorkerSettings,
    private readonly handlers: Handlers,
    private readonly guard: Guard,
    /** How many links share the places for jobs. */
    private readonly links: () => readonly Link[],
    private readonly onFailure: () => void,
  ) {
    this.isolation = new Isolation(settings.drainMs);
  }

  get waitMs(): number {
    return this.settings.waitMs + this.fillMs;
  }

  /** How many jobs may be in hand: one for each free handler, or its batch, and the prefetched ones. */
  get capacity(): number {
    return this.settings.concurrency * this.handlers.room + this.settings.prefetch;
  }

  /** The deliveries that handlers run now. */
  get atWork(): Delivery[] {
    return [...this.running].map(({ delivery }) => delivery);
  }

  /** Waits until no handler runs. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.awaiting.push(resolve);
      this.wake();
    });
  }

  private wake(): void {
    if (this.handling === 0 && this.awaiting.length > 0) for (const wake of this.awaiting.splice(0)) wake();
  }

  /** Takes no more jobs from now on, and gives back those that have not begun. */
  end(): void {
    this.isDraining = true;
    const waiting = [...this.backlog.splice(0), ...this.suspects, ...(this.killer ? [this.killer] : [])];
    this.suspects.clear();
    this.killer = null;
    this.returning = [];
    clearTimeout(this.again);
    for (const turn of waiting) this.giveBack(turn.link, turn.delivery);
    this.makeRoom();
    for (const bell of this.resting) bell.ring();
  }

  private giveBack(link: Link, delivery: Delivery): void {
    this.returned++;
    link.settle(delivery, core.returned(delivery));
  }

  claim(link: Link): number | Promise<number> {
    const free = this.links().length === 1 && !this.isDraining ? this.free : 0;
    if (free >= 1) {
      this.claimed += free; // it takes turns with nobody
      return free;
    }
    return new Promise((resolve) => {
      this.claims.set(link, resolve);
      this.scheduler.want(link, nowMs());
      this.makeRoom();
    });
  }

  /** Lets links fetch that wait for their turn. */
  private makeRoom(): void {
    clearTimeout(this.timer);
    if (this.isDraining) {
      for (const link of [...this.claims.keys()]) this.admit(link, 0);
      return;
    }
    const now = nowMs();
    for (let link = this.scheduler.first(now); link; link = this.scheduler.first(now)) {
      const { free } = this;
      if (free < 1) {
        this.scheduler.recall(now)?.recall();
        break;
      }
      this.scheduler.begin(link, now);
      this.admit(link, Math.max(1, Math.floor(free / this.links().length)));
    }
    const lookAt = this.claims.size > 0 ? Math.min(this.scheduler.lookAt(now), this.isolation.lookAt(now)) : Infinity;
    if (lookAt < Infinity) this.timer = setTimeout(() => this.makeRoom(), Math.max(1, lookAt - now));
  }

  private admit(link: Link, claim: number): void {
    const admitted = this.claims.get(link)!;
    this.claims.delete(link);
    this.claimed += claim;
    admitted(claim);
  }

  /** How many more jobs may be fetched. */
  private get free(): number {
    if (this.suspects.size > 0 || this.killer || this.alone) return 0;
    if (this.isolation.isOn(nowMs())) return this.isEmpty && this.claimed === 0 ? 1 : 0;
    const handlers = this.settings.concurrency - this.handling;
    return handlers * this.handlers.room + this.settings.prefetch - this.backlog.length - this.claimed;
  }

  /** Whether nothing is in hand, a job that is to run alone aside. */
  private get isEmpty(): boolean {
    return this.handling === 0 && this.backlog.length === 0 && this.suspects.size === 0;
  }

  takeOn(link: Link, claim: number, found: Delivery[]): void {
    this.claimed -= claim;
    if (found.length > 0 && this.isEmpty) this.isolation.end();
    this.scheduler.end(link, nowMs(), found.length === 0);
    for (let n = 0; n < found.length; n++) this.accept(link, found[n]!);
    this.startMore();
  }

  /** Puts a delivery into the backlog, or gives it back. Whatever it holds, the worker goes on: then the attempt has failed. */
  private accept(link: Link, delivery: Delivery): void {
    try {
      this.place(link, delivery);
    } catch (error) {
      this.guard.log.error(`dq: job ${delivery.name} found no handler: ${stackOf(error)}`);
      link.settle(delivery, core.unplaced(delivery, textOf(error)));
    }
  }

  private place(link: Link, delivery: Delivery): void {
    if (this.isDraining) return this.giveBack(link, delivery);
    const handler = this.handlers.choose(delivery);
    if (!handler) {
      const kind = (delivery.envelope?.kind ?? '').slice(0, MOST_SHOWN);
      this.guard.log.warn(`dq: no handler for kind "${kind}" of job ${delivery.name}${this.hint(kind)}`);
      return link.settle(delivery, core.unknown(delivery, kind));
    }
    delivery.handlerAttempts = handler.attempts;
    const { attempt, limit } = delivery;
    if (attempt > 1 && limit > 0 && attempt > limit) {
      this.guard.log.error(`dq: job ${delivery.name} is dead: ${core.USED_UP}`);
      return link.settle(delivery, core.usedUp(delivery));
    }
    if (handler.leaseMs !== null && handler.leaseMs !== delivery.leaseMs) link.relet(delivery, handler.leaseMs);
    const turn = { delivery, handler, link, place: -1 };
    if (attempt > 1 && attempt === limit && link.isCarrying) this.suspect(turn);
    else this.backlog.push(turn);
  }

  /** What the log says of the known kind that is like this one. */
  private hint(kind: string): string {
    const known = this.hints.get(kind);
    if (known !== undefined) return known;
    if (this.hints.size >= MOST_HINTS) this.hints.clear();
    const meant = closest(kind, [...this.handlers.kinds.keys()]);
    const hint = meant === undefined ? '' : `: did it mean "${meant}"?`;
    this.hints.set(kind, hint);
    return hint;
  }

  startMore(): void {
    if (this.backlog.length > 0) this.startBacklog();
    if (this.killer) this.runAlone();
    if (this.claims.size > 0) this.makeRoom();
  }

  private startBacklog(): void {
    while (!this.alone && !this.isHeld() && this.handling < this.settings.concurrency) {
      // A doubtful delivery waits until a heartbeat tells whether it is still ours.
      const at = this.backlog.findIndex(isSure);
      if (at < 0) break;
      const batch = this.take(at);
      if (batch.length > 0) this.begin(batch);
    }
  }

  // --- Jobs that may have ended their workers run their last attempt with nothing else in hand

  /** Whether no job may begin, as it could take along one that is to run alone. */
  private isHeld(): boolean {
    if (this.returning.length > 0) {
      this.returning = this.returning.filter(({ link, delivery }) => link.isTelling(delivery));
      if (this.returning.length > 0) this.startLater();
    }
    return this.suspects.size > 0 || this.returning.length > 0;
  }

  private startLater(): void {
    clearTimeout(this.again);
    this.again = setTimeout(() => this.startMore(), ALONE_AGAIN_MS);
  }

  private suspect(turn: Turn): void {
    this.suspects.add(turn);
    void turn.link.wasCutShort(turn.delivery).then((isKiller) => {
      if (!this.suspects.delete(turn)) return; // given back meanwhile
      if (!isKiller) {
        this.backlog.push(turn);
      } else if (this.isEmpty && this.claimed === 0) {
        this.guard.log.warn(`dq: job ${turn.delivery.name} may have ended its workers: its last attempt runs alone`);
        this.killer = turn;
      } else {
        this.isolate(turn);
      }
      this.startMore();
    });
  }

  /** Gives back a job that is to run alone, until nothing else is in hand. */
  private isolate(turn: Turn): void {
    const { link, delivery } = turn;
    const now = nowMs();
    if (!this.isolation.isOn(now)) {
      this.guard.log.warn(
        `dq: job ${delivery.name} may have ended its workers: its last attempt waits until it can run alone`,
      );
    }
    const delayMs = Math.ceil(this.isolation.want(now));
    link.settle(delivery, core.returned(delivery, ...(delayMs > 0 ? ['DELAY', delayMs] : [])));
    this.returning.push(turn);
  }

  /** Runs such a job once the server knows of the ends of all others. */
  private runAlone(): void {
    const killer = this.killer!;
    if (killer.delivery.isDoubtful || this.links().some((link) => link.isTelling())) return this.startLater();
    this.killer = null;
    if (!killer.link.begin(killer.delivery)) return;
    this.alone = killer;
    this.begin([killer]);
  }

  /** Takes one job from the backlog, or as many as its handler takes at a time. Leaves out lost ones. */
  private take(at: number): Turn[] {
    const first = this.backlog[at]!;
    const { handler } = first;
    if (handler.size === 1) {
      this.backlog.splice(at, 1);
      return first.link.begin(first.delivery) ? [first] : [];
    }
    const batch: Turn[] = [];
    const isTaken = (turn: Turn, n: number) => n >= at && turn.handler === handler && batch.length < handler.size;
    this.backlog = this.backlog.filter((turn, n) => {
      if (!isTaken(turn, n) || turn.delivery.isDoubtful) return true;
      if (turn.link.begin(turn.delivery)) batch.push(turn);
      return false;
    });
    return batch;
  }

  private begin(batch: Turn[]): void {
    this.handling++;
    for (let n = 0; n < batch.length; n++) this.running.add(batch[n]!);
    handle(batch, this.guard, () => this.ended(batch));
  }

  private ended(batch: readonly Turn[]): void {
    this.handling--;
    for (let n = 0; n < batch.length; n++) this.running.delete(batch[n]!);
    if (this.alone && batch.includes(this.alone)) this.alone = null;
    this.startMore();
    this.wake();
  }

  lost(delivery: Delivery): void {
    if (delivery.endsAt > nowMs()) this.guard.log.info(`dq: job ${delivery.name} was cancelled`);
    else this.guard.log.warn(`dq: lost job ${delivery.name}: its lease expired`);
    delivery.tell('lost');
    void this.guard.call('lost', [jobOf(delivery)]);
    if (this.backlog.length > 0) setImmediate(() => this.startMore()); // it may have been in the backlog
  }

  died(delivery: Delivery): void {
    this.deadHook?.answered(delivery);
  }

  async told(): Promise<void> {
    await this.deadHook?.finish();
  }

  refused(delivery: Delivery, error: Error, then: string): void {
    this.guard.log.error(`dq: the server refuses how job ${delivery.name} ended: ${error.message}; ${then}`);
  }

  off(command: string, then: string, error: unknown): void {
    if (this.saidOff.has(then)) return;
    this.saidOff.add(then);
    this.guard.log.warn(`dq: the server refuses ${command}: ${then} (${textOf(error)})`);
  }

  held(queue: string, why: string): void {
    this.guard.log.warn(`dq: queue ${queue}: no job for a minute, although some are ready: ${why}`);
  }

  complain = (error: unknown): void => this.guard.complain(error);

  // --- Trouble

  trouble(error: unknown): void {
    if (this.isDraining) return;
    const end = fatal(error);
    if (end) {
      this.failure ??= end;
      this.guard.log.error(`dq: ${end.message}`);
      this.onFailure();
      return;
    }
    const text = textOf(error);
    if (text === this.troubleSaid) return;
    this.troubleSaid = text;
    this.guard.log.warn(`dq: trouble with the server, trying again: ${text}`);
  }

  async rest(ms: number): Promise<void> {
    if (this.isDraining) return;
    const bell = new Bell();
    this.resting.add(bell);
    await bell.wait(ms);
    this.resting.delete(bell);
  }

  // --- For tests

  /** Handles what a link found. Returns how many. */
  async drain(link: Link, found: readonly Delivery[]): Promise<number> {
    let handled = 0;
    for (const delivery of found) this.accept(link, delivery);
    await link.flush();
    while (this.backlog.length > 0) {
      const batch = this.take(0);
      if (batch.length > 0) await new Promise<void>((resolve) => handle(batch, this.guard, resolve));
      handled += batch.length;
    }
    return handled;
  }
}
