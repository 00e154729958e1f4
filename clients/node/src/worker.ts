// The worker: whose turn it is, what runs, and how it stops. What it says to the server is in `link.ts`.

import * as core from './core';
import { type Delivery, Fetches, Handlers } from './core';
import { ConfigurationError, Say } from './errors';
import { type BatchProcessor, count, Handler, type HandlerOptions, leaseMs, type Processor } from './handler';
import { consoleLogger, type Hooks, type Logger } from './hooks';
import type { Job } from './job';
import { type Boss, Link, type Member } from './link';
import { shown, takes } from './mistakes';
import type { Queue } from './queue';
import { type Duration, toMs } from './times';
import { Bell, LONGEST_TIMER_MS, settled } from './waiting';

export interface WorkerOptions extends HandlerOptions {
  /** How many handlers run at a time; 10 by default. */
  concurrency?: number;
  /** How many jobs more may be in hand, so that short handlers need not wait for the network; 0 by default. */
  prefetch?: number;
  /** Of several queues each comes first in its share of the fetches; without weights the order is strict. */
  weights?: readonly number[] | null;
  /** How long handlers may go on when the worker stops; 25 s by default. */
  drain?: Duration;
  /** How long one fetch waits at the server; then it is sent again. 5 s by default. */
  wait?: Duration;
  hooks?: readonly Hooks[];
  logger?: Logger;
}

/** A processor, a handler or several. */
export type Processors<T> = Processor<T> | BatchProcessor<T> | Handler<T> | readonly Handler<T>[];

const OPTIONS: Record<keyof WorkerOptions, 1> = {
  concurrency: 1,
  attempts: 1,
  backoff: 1,
  lease: 1,
  batch: 1,
  kind: 1,
  prefetch: 1,
  weights: 1,
  drain: 1,
  wait: 1,
  hooks: 1,
  logger: 1,
};

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
  private readonly hooks: readonly Hooks[];
  private readonly log: Logger;
  private readonly handlers = new Handlers();
  private readonly ownLeaseMs: number | null;
  private readonly running = new Map<Delivery[], Promise<void>>();
  private readonly resting = new Set<Bell>();
  private readonly claims: ((claim: number) => void)[] = [];
  private backlog: Delivery[] = [];
  private links: Link[] = [];
  private supplies: Promise<void>[] = [];
  private inHand = 0;
  private claimed = 0;
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
      drain = core.DRAIN_MS,
      wait = core.WAIT_MS,
    } = takes('a worker', given, OPTIONS);
    const { kind, attempts, backoff, lease, batch } = given;
    this.queues = [queues].flat() as Queue<T>[];
    for (const queue of this.queues) checkQueue(queue);
    this.concurrency = count(concurrency, 'concurrency', 1);
    this.prefetch = count(prefetch, 'prefetch');
    this.drainMs = Math.min(toMs(drain, 'drain'), LONGEST_TIMER_MS);
    this.waitMs = Math.max(core.NO_WAIT_MS, toMs(wait, 'wait'));
    this.weights = given.weights ?? null;
    if (this.weights && this.weights.length !== this.queues.length) throw new TypeError('as many weights as queues');
    this.hooks = given.hooks ?? [];
    this.log = careful(given.logger ?? consoleLogger);
    this.ownLeaseMs = lease === undefined ? null : leaseMs(lease);
    if (processors && !isOptions) {
      const made = isHandlers(processors)
        ? [processors].flat()
        : [new Handler(processors as Processor<T>, { kind, attempts, backoff, lease, batch })];
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

  get leaseMs(): number {
    return this.ownLeaseMs ?? this.handlers.leaseMs;
  }

  /** How many jobs may be in hand. */
  private get capacity(): number {
    return this.concurrency * this.handlers.size + this.prefetch;
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
    if (this.life) throw new Error('a worker runs once: make another one');
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
      this.failure = core.fatal(error) ?? new ConfigurationError(String(error), { cause: error });
      this.log.error(`dq: ${this.failure.message}`);
      this.isDraining = true;
      return;
    }
    const { length } = this.links;
    for (const link of this.links) link.carry();
    this.supplies = this.links.map((link) => link.supply(this.capacity, length));
    await isStopped;
    await this.end();
  }

  private async end(): Promise<void> {
    this.isDraining = true;
    for (const delivery of this.backlog.splice(0)) this.giveBack(delivery);
    this.makeRoom();
    for (const bell of this.resting) bell.ring();
    const again = new Promise<void>((resolve) => (this.askedAgain = resolve));
    for (const link of this.links) void link.withdraw();
    if (this.stops < 2) await Promise.race([settled([this.idle()], this.drainMs), again]);
    for (const delivery of [...this.running.keys()].flat()) delivery.job.tell('stopping');
    // What a fetch was handed before it was withdrawn is read, to be given back.
    await settled([...this.running.values(), ...this.supplies], core.TOLD_MS);
    await Promise.all(this.links.map((link) => link.finish()));
    this.log.info('dq: stopped');
  }

  private async idle(): Promise<void> {
    await Promise.all(this.supplies);
    while (this.running.size > 0) await Promise.all(this.running.values());
  }

  private giveBack(delivery: Delivery): void {
    this.inHand--;
    delivery.owner.settle(delivery, core.returned(delivery));
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
    return [...groups.values()].map((members) => new Link(this, members, this.fetches(members)));
  }

  private fetches(members: Member[]): Fetches {
    // The shards of a queue take turns: none comes first.
    const isWeighted = this.weights !== null || members.some(({ queue }) => queue.shards > 0);
    const weights = isWeighted ? members.map(({ weight }) => weight) : null;
    return new Fetches(
      members.map(({ key }) => key),
      weights,
      this.leaseMs,
    );
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
      const free = this.isDraining ? 0 : this.capacity - this.inHand - this.claimed;
      if (free < 1 && !this.isDraining) return;
      const claim = free && Math.max(1, Math.floor(free / this.links.length));
      this.claimed += claim;
      this.claims.shift()!(claim);
    }
  }

  takeOn(claim: number, found: Delivery[]): void {
    this.claimed -= claim;
    this.accept(found);
    this.startMore();
    this.makeRoom();
  }

  /** Into the backlog, or back to the server. */
  private accept(found: Delivery[]): void {
    for (const delivery of found) {
      this.inHand++;
      delivery.handler = this.isDraining ? null : this.handlers.choose(delivery.job);
      if (delivery.handler) {
        this.backlog.push(delivery);
      } else if (this.isDraining) {
        this.giveBack(delivery);
      } else {
        this.log.warn(`dq: no handler for kind ${delivery.job.kind}: gave back job ${delivery.job.id}`);
        this.inHand--;
        delivery.owner.settle(delivery, core.unknown(delivery));
      }
    }
  }

  startMore(): void {
    while (this.backlog.length > 0 && this.running.size < this.concurrency) {
      const at = this.backlog.findIndex(({ owner }) => !owner.isStale());
      if (at < 0) return; // until a heartbeat tells which of them are ours yet
      const batch = this.take(at);
      const handled = this.handle(batch).then(() => {
        this.running.delete(batch);
        this.inHand -= batch.length;
        this.takeOn(0, []);
      });
      this.running.set(batch, handled);
    }
  }

  /** One job of the backlog, or as many as its handler takes at a time. */
  private take(at: number): Delivery[] {
    const { handler } = this.backlog[at]!;
    if (handler!.size === 1) return this.backlog.splice(at, 1);
    const batch: Delivery[] = [];
    this.backlog = this.backlog.filter((delivery) => {
      const isTaken = delivery.handler === handler && batch.length < handler!.size;
      if (isTaken) batch.push(delivery);
      return !isTaken;
    });
    return batch;
  }

  /** Never rejects. */
  private async handle(batch: Delivery[]): Promise<void> {
    const alive = batch.filter(({ job }) => !job.cancelled);
    if (alive.length === 0) return;
    const { hooks } = this;
    if (hooks.length > 0) this.hook('before', alive);
    let failure: { error: unknown } | null = null;
    try {
      await this.invoke(alive);
    } catch (error) {
      failure = { error };
    }
    for (const delivery of alive) {
      const { owner } = delivery;
      const ended = delivery.failure ?? failure;
      if (ended) this.failed(delivery, ended.error);
      else if (hooks.length > 0) this.hook('after', [delivery]);
      owner.settle(delivery, ended ? core.ended(delivery, ended.error) : core.done(delivery));
    }
  }

  private invoke(batch: Delivery[]): unknown {
    const jobs = batch.map(({ job }) => job);
    const handler = batch[0]!.handler!;
    const around = this.hooks.filter((hooks) => hooks.around);
    return around.reduceRight<() => unknown>(
      (next, hooks) => () => this.around(hooks, jobs, next),
      () => handler.call(jobs),
    )();
  }

  private around(hooks: Hooks, jobs: Job[], next: () => unknown): unknown {
    let isCalled = false;
    const call = () => {
      isCalled = true;
      return next();
    };
    try {
      return hooks.around!(jobs, call);
    } catch (error) {
      if (isCalled) throw error;
      this.log.error(`dq: the hook around failed: ${String(error)}`);
      return next();
    }
  }

  private failed(delivery: Delivery, error: unknown): void {
    const { job } = delivery;
    if (!(error instanceof Say) && !job.cancelled) {
      const said = error instanceof Error && error.stack ? error.stack : core.reason(error).toString();
      this.log.warn(`dq: job ${job.id} failed, attempt ${job.attempt}: ${said}`);
    }
    if (this.hooks.length > 0) this.hook('failed', [delivery], error);
  }

  lost(delivery: Delivery): void {
    this.log.warn(`dq: lost job ${delivery.job.id}: its lease ended before it was acknowledged`);
    delivery.job.tell('lost');
    if (this.hooks.length > 0) this.hook('lost', [delivery]);
  }

  private hook(name: 'before' | 'after' | 'failed' | 'lost', batch: Delivery[], error?: unknown): void {
    const onError = (thrown: unknown) => this.log.error(`dq: the hook ${name} failed: ${String(thrown)}`);
    for (const hooks of this.hooks) {
      for (const { job } of batch) {
        try {
          const result: unknown = hooks[name]?.(job, error);
          if (result instanceof Promise) result.catch(onError);
        } catch (thrown) {
          onError(thrown);
        }
      }
    }
  }

  // --- Trouble

  trouble(error: unknown): void {
    if (this.isDraining) return;
    const end = core.fatal(error);
    if (end) {
      this.failure ??= end;
      this.log.error(`dq: ${end.message}`);
      this.askedToStop();
      return;
    }
    const text = String(error);
    if (text === this.troubleSaid) return;
    this.troubleSaid = text;
    this.log.warn(`dq: trouble with the server, trying again: ${text}`);
  }

  stoodStill(ms: number): void {
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
          this.accept(await link.fetch(this.capacity, core.NO_WAIT_MS));
          if (link.trouble) throw core.fatal(link.trouble) ?? link.trouble;
          await link.flush();
          if (this.backlog.length === 0) break;
          while (this.backlog.length > 0) {
            const batch = this.take(0);
            await this.handle(batch);
            this.inHand -= batch.length;
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

function checkQueue(queue: unknown): void {
  if (typeof (queue as Queue | undefined)?.driver === 'function') return;
  const name = typeof queue === 'string' ? queue : 'orders';
  throw new TypeError(
    `a worker needs a Queue, not ${shown(queue)}: new Worker(new Queue('redis://localhost', '${name}'), ...)`,
  );
}

function isHandlers(given: unknown): given is Handler | readonly Handler[] {
  return given instanceof Handler || Array.isArray(given);
}

/** What a logger throws must not keep a job from being settled. */
function careful(logger: Logger): Logger {
  const say = (level: keyof Logger) => (message: string) => {
    try {
      logger[level](message);
    } catch {
      // nobody can be told
    }
  };
  return { info: say('info'), warn: say('warn'), error: say('error') };
}
