// The worker: whose turn it is, what runs, and how it stops. What it says to the server is in `link.ts`, what it calls of
// the user's in `guard.ts`.

import * as core from './core';
import { ConfigurationError } from './errors';
import { fatal } from './fatal';
import { careful, Guard } from './guard';
import { type BatchProcessor, count, Handler, type HandlerOptions, Handlers, leaseMs, type Processor } from './handler';
import { handle, type Turn } from './handling';
import { consoleLogger, type Logger } from './hooks';
import type { Delivery } from './job';
import * as limits from './limits';
import { type Boss, Link, type Member } from './link';
import { takes } from './mistakes';
import type { Queue } from './queue';
import { textOf } from './shown';
import { toMs } from './times';
import { Bell, LONGEST_TIMER_MS, settled, watch } from './waiting';
import { checkQueue, isHandlers, jobs, type Processors, WORKER, type WorkerOptions } from './worker-options';

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/** Runs handlers on the jobs of one or several queues. */
export class Worker<T = any> implements Boss {
  readonly queues: readonly Queue<T>[];
  readonly concurrency: number;
  readonly prefetch: number;
  readonly drainMs: number;
  readonly waitMs: number;
  /** Whether it stops, or has stopped. */
  isDraining = false;
  private readonly weights: readonly number[] | null;
  private readonly guard: Guard;
  private readonly log: Logger;
  private readonly handlers = new Handlers();
  private readonly ownLeaseMs: number | null;
  private readonly running = new Map<readonly Turn[], Promise<void>>();
  private readonly resting = new Set<Bell>();
  private readonly claims: ((claim: number) => void)[] = [];
  private backlog: Turn[] = [];
  private links: Link[] = [];
  private supplies: Promise<void>[] = [];
  private claimed = 0;
  private returned = 0;
  private stops = 0;
  private askedToStop: () => void = () => {};
  private askedAgain: () => void = () => {};
  private life: Promise<void> | null = null;
  private failure: ConfigurationError | null = null;
  private troubleSaid = '';

  /**
   * queues: one, or several, in strict order or by `weights`.
   *
   * processor: gets a job; what it does for jobs of one kind only is said by `job`. Options of handlers are its own.
   */
  constructor(
    queues: Queue<T> | readonly Queue<T>[],
    processor: BatchProcessor<T>,
    options: WorkerOptions & { batch: number },
  );
  constructor(
    queues: Queue<T> | readonly Queue<T>[],
    processor: Processor<T> | Handler<T> | readonly Handler<T>[],
    options?: WorkerOptions,
  );
  constructor(queues: Queue<T> | readonly Queue<T>[], options?: WorkerOptions);
  constructor(
    queues: Queue<T> | readonly Queue<T>[],
    processors?: Processors<T> | WorkerOptions,
    options: WorkerOptions = {},
  ) {
    const isOptions = processors && typeof processors === 'object' && !isHandlers(processors);
    const given = isOptions ? (processors as WorkerOptions) : options;
    const {
      concurrency = 10,
      prefetch = 0,
      drain = limits.DRAIN_MS,
      wait = limits.WAIT_MS,
    } = takes('a worker', given, WORKER);
    const { kind, attempts, backoff, lease, batch } = given;
    const isOfKind = kind !== undefined && kind !== null;
    this.queues = [queues].flat() as Queue<T>[];
    for (const queue of this.queues) checkQueue(queue);
    this.concurrency = count(concurrency, 'concurrency', 1);
    this.prefetch = count(prefetch, 'prefetch');
    this.drainMs = Math.min(toMs(drain, 'drain'), LONGEST_TIMER_MS);
    this.waitMs = Math.max(limits.NO_WAIT_MS, toMs(wait, 'wait'));
    this.weights = given.weights ?? null;
    if (this.weights && this.weights.length !== this.queues.length) throw new TypeError('weights: one for each queue');
    this.log = careful(given.logger ?? consoleLogger);
    this.guard = new Guard([...(given.hooks ?? [])], this.log);
    this.ownLeaseMs = leaseMs(lease);
    if (processors && !isOptions) {
      const made = isHandlers(processors)
        ? [processors].flat()
        : [
            new Handler(processors as Processor<T>, {
              kind,
              attempts,
              backoff,
              batch,
              lease: isOfKind ? lease : undefined,
            }),
          ];
      for (const each of made) this.handlers.add(each as Handler);
    }
  }

  /** The handler of jobs of that kind. */
  job<D = any>(kind: string, processor: BatchProcessor<D>, options: HandlerOptions & { batch: number }): this;
  job<D = any>(kind: string, processor: Processor<D>, options?: HandlerOptions): this;
  job<D = any>(kind: string, processor: Processor<D> | BatchProcessor<D>, options: HandlerOptions = {}): this {
    this.handlers.add(new Handler(processor, { ...options, kind }));
    return this;
  }

  /** How many jobs may be in hand. Each that is fetched has a free handler, but for the prefetched. */
  private get capacity(): number {
    return this.concurrency * this.handlers.room + this.prefetch;
  }

  // --- Running and stopping

  /**
   * Works until it is stopped: by `stop`, or by SIGTERM or SIGINT (a second one ends the drain), unless `signals` is false.
   *
   * Throws ConfigurationError where waiting would not help.
   */
  async run(options: { signals?: boolean } = {}): Promise<void> {
    const { signals = true } = takes('run', options, { signals: 1 });
    const onSignal = () => void this.stop();
    this.start();
    for (const name of signals ? SIGNALS : []) process.on(name, onSignal);
    try {
      await this.join();
    } finally {
      for (const name of signals ? SIGNALS : []) process.off(name, onSignal);
    }
  }

  /** Begins to work, and returns at once. To be followed by `stop`. */
  start(): void {
    if (this.life) throw new Error('a worker runs only once: create another one');
    const isStopped = new Promise<void>((resolve) => (this.askedToStop = resolve));
    if (this.stops > 0) this.askedToStop();
    this.life = this.live(isStopped);
  }

  /**
   * Fetches no more, lets handlers end, and gives back what is left: in at most `drain` and two seconds. A second call ends
   * the drain.
   */
  async stop(): Promise<void> {
    this.stops++;
    if (this.stops > 1) this.askedAgain();
    this.askedToStop();
    await this.life;
  }

  /** Waits until it has stopped; throws the ConfigurationError that it ended with. */
  async join(): Promise<void> {
    await this.life;
    if (this.failure) throw this.failure;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  private async live(isStopped: Promise<void>): Promise<void> {
    try {
      this.links = await this.makeLinks();
    } catch (error) {
      this.failure = fatal(error) ?? new ConfigurationError(textOf(error), { cause: error });
      this.log.error(`dq: ${this.failure.message}`);
      this.isDraining = true;
      return;
    }
    const { length } = this.links;
    for (const link of this.links) link.carry();
    this.supplies = this.links.map((link) => link.supply(this.capacity, length));
    const unwatch = watch(limits.TICK_MS, (ms) => this.tick(ms));
    await isStopped;
    unwatch();
    await this.end();
  }

  private async end(): Promise<void> {
    this.isDraining = true;
    for (const turn of this.backlog.splice(0)) this.giveBack(turn.link, turn.delivery);
    this.makeRoom();
    for (const bell of this.resting) bell.ring();
    const again = new Promise<void>((resolve) => (this.askedAgain = resolve));
    for (const link of this.links) void link.withdraw();
    const isHopeless = this.failure !== null || this.stops > 1;
    if (!isHopeless) await Promise.race([settled([this.idle()], this.drainMs), again]);
    for (const { delivery } of [...this.running.keys()].flat()) delivery.tell('stopping');
    // What a fetch was handed before it was withdrawn is read, to be given back.
    await settled([...this.running.values(), ...this.supplies], limits.TOLD_MS);
    await Promise.all(this.links.map((link) => link.finish()));
    const returned = this.links.reduce((sum, link) => sum + link.returned, this.returned);
    this.log.info(`dq: stopped${returned > 0 ? `, gave back ${jobs(returned)}` : ''}`);
  }

  private async idle(): Promise<void> {
    const count = [...this.running.keys()].flat().length;
    if (count > 0) this.log.info(`dq: stopping: waits up to ${this.drainMs / 1000} s for ${jobs(count)} to end`);
    await Promise.all(this.supplies);
    while (this.running.size > 0) await Promise.all(this.running.values());
  }

  private giveBack(link: Link, delivery: Delivery): void {
    this.returned++;
    link.settle(delivery, core.returned(delivery));
  }

  /** The queues' keys, those together that one BPOP can wait for: in a cluster, those of one slot. */
  private async makeLinks(): Promise<Link[]> {
    if (this.handlers.all().length === 0) throw new ConfigurationError('the worker has no handler');
    const groups = new Map<string, Member[]>();
    for (const [n, queue] of this.queues.entries()) {
      const driver = await queue.driver();
      for (const key of queue.keys) {
        const reach = await driver.reach(key);
        groups.set(reach, [...(groups.get(reach) ?? []), { queue, key, weight: this.weights?.[n] ?? 1 }]);
      }
    }
    return [...groups].map(([place, members]) => new Link(this, place, members, this.fetches(members)));
  }

  private fetches(members: Member[]): core.Fetches {
    // The shards of a queue take turns: none comes first.
    const isWeighted = this.weights !== null || members.some(({ queue }) => queue.shards > 0);
    const weights = isWeighted ? members.map(({ weight }) => weight) : null;
    const keys = members.map(({ key }) => key);
    return new core.Fetches(keys, weights, this.lease);
  }

  private get lease(): core.Lease {
    const ms = this.handlers.leaseMs;
    if (ms !== null) return { word: 'TTR', ms };
    return this.ownLeaseMs === null ? null : { word: 'LEASE', ms: this.ownLeaseMs };
  }

  // --- Handling

  claim(): Promise<number> {
    return new Promise((resolve) => {
      this.claims.push(resolve);
      this.makeRoom();
    });
  }

  /** To those that wait for their turn to fetch. */
  private makeRoom(): void {
    while (this.claims.length > 0) {
      const free = this.isDraining ? 0 : this.free;
      if (free < 1 && !this.isDraining) return;
      const claim = free && Math.max(1, Math.floor(free / this.links.length));
      this.claimed += claim;
      this.claims.shift()!(claim);
    }
  }

  /** How many jobs may be fetched. */
  private get free(): number {
    const handlers = this.concurrency - this.running.size;
    return handlers * this.handlers.room + this.prefetch - this.backlog.length - this.claimed;
  }

  takeOn(link: Link, claim: number, found: Delivery[]): void {
    this.claimed -= claim;
    for (const delivery of found) this.accept(link, delivery);
    this.startMore();
  }

  /** Into the backlog, or back to the server. */
  private accept(link: Link, delivery: Delivery): void {
    if (this.isDraining) return this.giveBack(link, delivery);
    const handler = this.handlers.choose(delivery);
    if (!handler) {
      this.log.warn(`dq: no handler for kind ${delivery.envelope?.kind}: gave back job ${delivery.name}`);
      return link.settle(delivery, core.unknown(delivery));
    }
    if (handler.leaseMs !== null && handler.leaseMs !== delivery.leaseMs) link.relet(delivery, handler.leaseMs);
    this.backlog.push({ delivery, handler, link });
  }

  startMore(): void {
    while (this.running.size < this.concurrency) {
      // A doubtful one waits until a heartbeat tells whether it is ours yet.
      const at = this.backlog.findIndex(({ delivery }) => !delivery.isDoubtful);
      if (at < 0) break;
      const batch = this.take(at);
      if (batch.length > 0) this.begin(batch);
    }
    this.makeRoom();
  }

  /** One job of the backlog, or as many as its handler takes at a time; but none that is lost. */
  private take(at: number): Turn[] {
    const { handler } = this.backlog[at]!;
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
    const handled = handle(batch, this.guard).then(() => {
      this.running.delete(batch);
      this.startMore();
    });
    this.running.set(batch, handled);
  }

  lost(delivery: Delivery): void {
    this.log.warn(`dq: lost job ${delivery.name}: its lease expired before it was acknowledged`);
    delivery.tell('lost');
    void this.guard.call('lost', [delivery.job]);
    if (this.backlog.length > 0) setImmediate(() => this.startMore()); // it may have been there
  }

  refused(delivery: Delivery, error: Error, isOver: boolean): void {
    const then = isOver ? 'it comes again when its lease ends' : 'told once more, with less';
    this.log.error(`dq: the server refuses how job ${delivery.name} ended: ${error.message}; ${then}`);
  }

  complain = (error: unknown): void => this.guard.complain(error);

  // --- Trouble

  trouble(error: unknown): void {
    if (this.isDraining) return;
    const end = fatal(error);
    if (end) {
      this.failure ??= end;
      this.log.error(`dq: ${end.message}`);
      this.askedToStop();
      return;
    }
    const text = textOf(error);
    if (text === this.troubleSaid) return;
    this.troubleSaid = text;
    this.log.warn(`dq: trouble with the server, trying again: ${text}`);
  }

  private tick(ms: number): void {
    // Each is told.
    if (!this.links.map((link) => link.stoodStill(ms)).includes(true)) return;
    const seconds = (ms / 1000).toFixed(1);
    this.log.warn(
      `dq: the event loop stood still for ${seconds} s: no lease was renewed. Do long computations elsewhere.`,
    );
  }

  async rest(ms: number): Promise<void> {
    if (this.isDraining) return;
    const bell = new Bell();
    this.resting.add(bell);
    await bell.wait(ms);
    this.resting.delete(bell);
  }

  // --- For tests

  /** Handles all jobs that are ready or become so meanwhile. Returns how many. */
  async drain(): Promise<number> {
    let handled = 0;
    const links = await this.makeLinks();
    this.links = links;
    try {
      for (const link of links) {
        for (;;) {
          for (const found of await link.fetch(this.capacity, limits.NO_WAIT_MS)) this.accept(link, found);
          if (link.trouble) throw fatal(link.trouble) ?? link.trouble;
          await link.flush();
          if (this.backlog.length === 0) break;
          while (this.backlog.length > 0) {
            const batch = this.take(0);
            if (batch.length > 0) await handle(batch, this.guard);
            handled += batch.length;
          }
        }
      }
      return handled;
    } finally {
      for (const link of links) link.release();
      this.links = [];
    }
  }
}
