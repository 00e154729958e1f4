// The worker: how it starts and stops. `pool.ts` decides whose turn it is, `link.ts` talks to the server, `guard.ts` calls the
// user's code.

import type { Member } from './boss';
import * as core from './core';
import { WorkerPool } from './pool';
import { DeadHook } from './deadhook';
import type { Delivery } from './delivery';
import { ConfigurationError } from './errors';
import { fatal } from './fatal';
import { careful, Guard } from './guard';
import { type BatchProcessor, Handler, type HandlerOptions, Handlers, type Processor } from './handler';
import { probe } from './health';
import type { Logger } from './hooks';
import * as limits from './limits';
import { Link } from './link';
import { takes } from './mistakes';
import type { Queue } from './queue';
import * as ruled from './ruled';
import { textOf } from './format';
import type { Duration } from './times';
import { nowMs, settled, watch } from './waiting';
import {
  checkQueue,
  handlersOf,
  isHandlers,
  jobs,
  type Processors,
  settingsOf,
  type WorkerOptions,
  type WorkerSettings,
} from './worker-options';

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/** Runs handlers on the jobs of one or several queues. */
export class Worker<T = unknown> {
  readonly queues: readonly Queue<T>[];
  private readonly settings: WorkerSettings;
  private readonly log: Logger;
  private readonly handlers = new Handlers();
  private readonly guard: Guard;
  private readonly pool: WorkerPool;
  private readonly rules: ruled.Said[] = [];
  private links: Link[] = [];
  private supplies: Promise<void>[] = [];
  private stops = 0;
  private askedToStop: () => void = () => {};
  private askedAgain: () => void = () => {};
  private life: Promise<void> | null = null;
  private isOver = false;

  /**
   * queues: one, or several, in strict order or by `weights`.
   *
   * processor: gets the jobs; `job` adds handlers for one kind of jobs. The worker's options include those of this handler.
   */
  constructor(
    queues: Queue<T> | readonly Queue<T>[],
    processor: BatchProcessor<T>,
    options: WorkerOptions & { batch: number },
  );
  constructor(
    queues: Queue<T> | readonly Queue<T>[],
    processor: Processor<T> | Handler<any> | readonly Handler<any>[],
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
    this.queues = [queues].flat() as Queue<T>[];
    this.settings = settingsOf(given, this.queues.length);
    for (const queue of this.queues) checkQueue(queue);
    this.log = careful(this.settings.logger);
    this.guard = new Guard(this.settings.hooks, this.log, this.settings.around);
    const links = () => this.links;
    this.pool = new WorkerPool(this.settings, this.handlers, this.guard, links, () => this.askedToStop());
    const made = processors && !isOptions ? handlersOf(processors as Processors<T>, given) : [];
    for (const each of made) this.handlers.add(each);
  }

  /** Its connections are not shown, as they may have a password. */
  toString(): string {
    return `Worker(${this.queues.join(', ')})`;
  }

  toJSON(): { queues: readonly Queue<T>[] } {
    return { queues: this.queues };
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }

  get concurrency(): number {
    return this.settings.concurrency;
  }

  /** Whether it is stopping, or has stopped. */
  get isDraining(): boolean {
    return this.pool.isDraining;
  }

  /** Adds the handler of jobs of one kind. */
  job<D = unknown>(kind: string, processor: BatchProcessor<D>, options: HandlerOptions & { batch: number }): this;
  job<D = unknown>(kind: string, processor: Processor<D>, options?: HandlerOptions): this;
  job<D = unknown>(kind: string, processor: Processor<D> | BatchProcessor<D>, options: HandlerOptions = {}): this {
    this.handlers.add(new Handler(processor, { ...options, kind }));
    return this;
  }

  /**
   * Adds the handler of a job that comes again by a cron expression, in the zone `tz` (UTC by default). The worker adds that job
   * to its first queue when it starts, as `queue.cron` does. When a program has left the rule, delete the job by its id.
   */
  cron<D = unknown>(
    kind: string,
    expression: string,
    processor: Processor<D>,
    options: ruled.CronHandlerOptions<D> = {},
  ): this {
    const { own, data, rule } = ruled.split('cron', kind, options);
    return this.ruled((queue) => queue.cron(expression, data, rule), processor, own);
  }

  /** Adds the handler of a job that comes again every `interval`. See `cron`. */
  every<D = unknown>(
    kind: string,
    interval: Duration,
    processor: Processor<D>,
    options: ruled.EveryHandlerOptions<D> = {},
  ): this {
    const { own, data, rule } = ruled.split('every', kind, options);
    return this.ruled((queue) => queue.every(interval, data, rule), processor, own);
  }

  private ruled(rule: ruled.Said, processor: Processor<any>, options: HandlerOptions): this {
    if (this.life) throw new Error('the worker runs already: its rules must be known before');
    this.handlers.add(new Handler(processor, options));
    this.rules.push(rule);
    return this;
  }

  // --- Running and stopping

  /**
   * Works until it is stopped, by `stop`, SIGTERM or SIGINT; not by signals if `signals` is false. A second stop or signal ends
   * the drain.
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

  /** Starts to work, and returns at once. `stop` must follow. */
  start(): void {
    if (this.life) throw new Error('a worker runs only once: create another one');
    const isStopped = new Promise<void>((resolve) => (this.askedToStop = resolve));
    if (this.stops > 0) this.askedToStop();
    this.life = this.live(isStopped);
  }

  /** @internal The job's handler. */
  chosen(delivery: Delivery): Handler<T> | null {
    return this.handlers.choose(delivery);
  }

  /**
   * Stops fetching, lets handlers end, and gives back all other jobs: in at most `drain` and two seconds. A second call ends
   * the drain.
   */
  async stop(): Promise<void> {
    this.stops++;
    if (this.stops > 1) this.askedAgain();
    this.askedToStop();
    await this.life;
  }

  /** Waits until it has stopped; throws the ConfigurationError that ended it. */
  async join(): Promise<void> {
    await this.life;
    if (this.pool.failure) throw this.pool.failure;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  private async live(isStopped: Promise<void>): Promise<void> {
    let endProbe = () => {};
    try {
      this.links = await this.makeLinks();
      if (this.settings.health !== null) endProbe = await probe(this.settings.health, () => this.illness);
    } catch (error) {
      this.pool.failure = fatal(error) ?? new ConfigurationError(textOf(error), { cause: error });
      this.log.error(`dq: ${this.pool.failure.message}`);
      this.pool.end();
      return;
    }
    this.log.info(`dq: started: ${this.named}, concurrency ${this.settings.concurrency}`);
    for (const link of this.links) link.carry();
    this.pool.deadHook?.start();
    void ruled.say(this.rules, this.queues[0]!, this.pool, this.log);
    this.supplies = this.links.map((link) => link.supply(this.links.length === 1));
    const ticking = watch(limits.TICK_MS, (ms) => this.tick(ms));
    this.pool.lateMs = ticking.lateMs;
    await isStopped;
    ticking.end();
    this.pool.lateMs = () => 0;
    await this.end();
    this.isOver = true;
    endProbe();
  }

  // --- Health

  /**
   * Whether the server answered the last fetch or heartbeat within its time. False before the first answer, while the server is
   * away, and once the worker has stopped.
   */
  get isHealthy(): boolean {
    return this.illness === null;
  }

  private get illness(): string | null {
    if (!this.life) return 'the worker was not started';
    if (this.pool.failure) return this.pool.failure.message;
    if (this.isOver) return 'the worker has stopped';
    if (this.links.length === 0) return 'the worker is starting';
    return this.links.find(({ illness }) => illness !== null)?.illness ?? null;
  }

  private async end(): Promise<void> {
    const { pool } = this;
    const again = new Promise<void>((resolve) => (this.askedAgain = resolve));
    pool.end();
    const isHopeless = pool.failure !== null || this.stops > 1;
    const withdrawMs = (isHopeless ? 0 : this.settings.drainMs) + 2 * limits.TOLD_MS;
    for (const link of this.links) void link.withdraw(withdrawMs);
    const until = nowMs() + this.settings.drainMs;
    const whileDraining = (ending: Promise<unknown>) =>
      isHopeless ? null : Promise.race([settled([ending], Math.max(0, until - nowMs())), again]);
    await whileDraining(this.idle());
    for (const delivery of pool.atWork) delivery.tell('stopping');
    // Jobs that a fetch was handed before it was withdrawn are read, to be given back.
    await settled([pool.idle(), ...this.supplies], limits.TOLD_MS);
    const finished = Promise.all(this.links.map((link) => link.finish()));
    await whileDraining(finished); // CLIENT PAUSE may hold the answers back
    await pool.deadHook?.leave();
    for (const link of this.links) link.closeIn(limits.FINISH_MS);
    await finished;
    const returned = this.links.reduce((sum, link) => sum + link.returned, pool.returned);
    this.log.info(
      `dq: stopped: ${this.named}, ${returned > 0 ? `gave back ${jobs(returned)}` : 'no job was given back'}`,
    );
  }

  private get named(): string {
    return `queue${this.queues.length > 1 ? 's' : ''} ${this.queues.map(({ name }) => name).join(', ')}`;
  }

  private async idle(): Promise<void> {
    const { length } = this.pool.atWork;
    const seconds = this.settings.drainMs / 1000;
    if (length > 0) this.log.info(`dq: stopping: waits up to ${seconds} s for ${jobs(length)} to end`);
    await Promise.all(this.supplies);
    await this.pool.idle();
  }

  /** Makes a link for the keys that one BPOP can wait for: in a cluster, those of one slot. */
  private async makeLinks(): Promise<Link[]> {
    if (this.handlers.all().length === 0) throw new ConfigurationError('the worker has no handler');
    this.pool.fillMs = this.handlers.fill?.[1] ?? 0;
    const groups = new Map<string, Member[]>();
    for (const [n, queue] of this.queues.entries()) {
      const driver = await queue.driver();
      for (const key of queue.keys) {
        const reach = await driver.reach(key);
        groups.set(reach, [...(groups.get(reach) ?? []), { queue, key, weight: this.settings.weights?.[n] ?? 1 }]);
      }
    }
    if (this.guard.wantsDead)
      this.pool.deadHook ??= new DeadHook(this.guard, this.pool, this.lease?.ms ?? limits.DEFAULT_TTR_MS);
    return [...groups].map(([place, members]) => {
      const link = new Link(this.pool, place, members, this.fetches(members));
      this.pool.deadHook?.join(link, members);
      return link;
    });
  }

  private fetches(members: Member[]): core.Fetches {
    // The shards of a queue take turns: none comes first.
    const isWeighted = this.settings.weights !== null || members.some(({ queue }) => queue.shards > 0);
    const weights = isWeighted ? members.map(({ weight }) => weight) : null;
    const keys = members.map(({ key }) => key);
    return new core.Fetches(keys, weights, this.lease, this.handlers.fill);
  }

  private get lease(): core.Lease {
    const ms = this.handlers.leaseMs;
    if (ms !== null) return { word: 'TTR', ms };
    const own = this.settings.leaseMs;
    return own === null ? null : { word: 'LEASE', ms: own };
  }

  private tick(ms: number): void {
    // All links are told.
    if (!this.links.map((link) => link.stoodStill(ms)).includes(true)) return;
    const seconds = (ms / 1000).toFixed(1);
    this.log.warn(
      `dq: the event loop stood still for ${seconds} s: no lease was renewed. Do long computations elsewhere.`,
    );
  }

  // --- For tests

  /** Handles all jobs that are ready or become so meanwhile. Returns how many. */
  async drain(): Promise<number> {
    let handled = 0;
    for (const rule of this.rules.splice(0)) await rule(this.queues[0]!);
    this.links = await this.makeLinks();
    try {
      await this.pool.deadHook?.drain();
      for (const link of this.links) {
        for (;;) {
          const found = await link.fetch(this.pool.capacity, limits.NO_WAIT_MS);
          if (link.trouble) throw fatal(link.trouble) ?? link.trouble;
          if (found.length === 0) break;
          handled += await this.pool.drain(link, found);
        }
      }
      await this.pool.deadHook?.drain();
      return handled;
    } finally {
      for (const link of this.links) link.release();
      this.links = [];
    }
  }
}
