// The queues that are reached by one pair of connections: one that waits, one for the rest.
//
// `supply` fetches, with the acknowledgements of finished jobs in the same write. The *courier* tells the server what no
// fetch took along within a millisecond, and renews leases.

import { Channel } from './channel';
import type { Codec } from './codec';
import * as core from './core';
import type { Fetches, Outcome, Together } from './core';
import { Ends } from './ends';
import { fatal, isRefusal } from './fatal';
import { Delivery } from './job';
import { Leases } from './leases';
import * as limits from './limits';
import type { Queue } from './queue';
import { Running } from './running';
import { Bell, LONGEST_TIMER_MS, nowMs, settled, sleep, turn, within } from './waiting';
import type { Command } from './wire';

export interface Member {
  queue: Queue;
  key: Buffer;
  weight: number;
}

/** What a link asks of its worker. */
export interface Boss {
  readonly waitMs: number;
  readonly isDraining: boolean;
  /** How many jobs a link may fetch, when it is its turn; 0 to end. */
  claim(): Promise<number>;
  takeOn(link: Link, claim: number, found: Delivery[]): void;
  startMore(): void;
  lost(delivery: Delivery): void;
  refused(delivery: Delivery, error: Error, isOver: boolean): void;
  /** Of a listener of a job's signal. */
  complain(error: unknown): void;
  trouble(error: unknown): void;
  /** Until then, or until the worker stops. */
  rest(ms: number): Promise<void>;
}

export class Link {
  private readonly waiting: Channel;
  private readonly control: Channel;
  private readonly codecs: Map<string, Codec>;
  private readonly leases: Leases;
  private readonly ends: Ends;
  private readonly running: Running;
  /** Leases that are to have another length. */
  private readonly lengths = new Map<Delivery, number>();
  private readonly bell = new Bell();
  private readonly pause = new Bell();
  private isFetching = false;
  private isFinishing = false;
  private isClosed = false;
  private carrying: Promise<void> | null = null;
  private troubles = 0;
  /** When the courier looks again by itself. */
  private wakesAt = -Infinity;
  private wantsBeat = false;
  /** For how long the event loop stood still during this fetch. */
  private stillMs = 0;
  /** Of the last fetch. */
  trouble: unknown = null;
  /** How many jobs the stop gave back. */
  returned = 0;

  constructor(
    private readonly boss: Boss,
    place: string,
    members: readonly Member[],
    private readonly fetches: Fetches,
  ) {
    const { queue, key } = members[0]!;
    this.waiting = new Channel(
      () => queue.driver(),
      key,
      () => this.beatSoon(),
    );
    this.control = new Channel(
      () => queue.driver(),
      key,
      () => (this.wantsBeat = true),
    );
    this.codecs = new Map(members.map((member) => [member.key.toString('latin1'), member.queue.codec]));
    this.leases = new Leases(
      (delivery) => this.boss.lost(delivery),
      () => this.carrying !== null,
    );
    this.ends = new Ends(this.bell, {
      heard: (delivery) => this.leases.heard(delivery),
      lost: (delivery) => this.boss.lost(delivery),
      refused: (delivery, error, isOver) => this.boss.refused(delivery, error, isOver),
    });
    this.running = new Running(place, (delivery) => this.lose(delivery));
  }

  private get answerMs(): number {
    return Math.min(limits.ANSWER_MS, Math.max(this.leases.beatMs, limits.SHORTEST_ANSWER_MS));
  }

  // --- Fetching

  /** Fetches as long as the worker works; `linkCount` of them share what may be in hand. */
  async supply(capacity: number, linkCount: number): Promise<void> {
    const waitMs = capacity >= linkCount ? this.boss.waitMs : limits.TURN_MS;
    while (!this.boss.isDraining) {
      // Connects before it claims: a node that is away holds up no other.
      await this.waiting.open().catch((error: unknown) => this.failed(error));
      const claim = this.trouble ? 0 : await this.boss.claim();
      if (claim > 0) this.boss.takeOn(this, claim, await this.fetch(claim, waitMs));
      if (this.trouble) await this.boss.rest(core.troubleMs(this.troubles));
      else await turn(); // what is done at once goes along with the next fetch
      this.trouble = null;
    }
  }

  /** Tells what happened since, and waits for jobs. Never rejects. */
  async fetch(count: number, waitMs: number): Promise<Delivery[]> {
    this.isFetching = true;
    this.stillMs = 0;
    try {
      const line = await this.waiting.open();
      if (this.boss.isDraining) return [];
      const told = this.ends.take();
      const replies = line.ask([...told.map(({ command }) => command), this.fetches.command(count, waitMs)]);
      const heard = this.hear(told, replies, this.waiting);
      const last = replies[told.length]!;
      const reply = await within(last, waitMs + limits.SLACK_MS, 'a fetch', () => this.waiting.close());
      const found = this.found(reply); // whatever became of the rest: they are ours now
      const trouble = await heard;
      if (trouble && found.length === 0) throw trouble;
      this.trouble = null;
      this.troubles = 0;
      return found;
    } catch (error) {
      this.failed(error);
      return [];
    } finally {
      this.isFetching = false;
    }
  }

  private failed(error: unknown): void {
    this.trouble = error;
    this.troubles++;
    this.waiting.close();
    this.boss.trouble(error);
  }

  private found(reply: unknown): Delivery[] {
    if (reply instanceof Error) throw reply;
    if (reply === null) return [];
    const [key, rows] = reply as [Buffer, unknown[][]];
    const codec = this.codecs.get(key.toString('latin1'))!;
    const found = rows.map((row) => new Delivery(key, row, codec, this.boss.complain));
    return found.filter((delivery) => this.accept(delivery));
  }

  /** False where this process runs an earlier delivery of the job: that one is lost, and this one goes back. */
  private accept(delivery: Delivery): boolean {
    delivery.leaseMs = this.fetches.leaseMs(delivery.ttrMs);
    delivery.isDoubtful = this.stillMs >= Math.max(delivery.leaseMs / 3, limits.STILL_MS);
    if (delivery.isDoubtful) this.beatSoon();
    this.leases.take(delivery);
    if (this.leases.beatAt < this.wakesAt) this.bell.ring();
    if (this.running.enter(delivery)) return true;
    this.settle(delivery, core.stillRunning(delivery));
    return false;
  }

  // --- What runs

  /** Whether its handler may begin: not without a lease. */
  begin(delivery: Delivery): boolean {
    const isOurs = !delivery.told && !this.leases.isOver(delivery);
    if (isOurs) this.running.begin(delivery);
    else this.running.end(delivery);
    return isOurs;
  }

  /** A lease of that length, whatever it was delivered with. */
  relet(delivery: Delivery, leaseMs: number): void {
    if (this.carrying === null) return;
    this.lengths.set(delivery, leaseMs);
    this.bell.ring();
  }

  private lose(delivery: Delivery): void {
    if (this.leases.lose(delivery)) this.boss.lost(delivery);
  }

  // --- What the server is told

  /** Who takes a delivery out of the leases decides how it ends: its handler, a heartbeat, its lease's end or the stop. */
  settle(delivery: Delivery, outcome: Outcome): void {
    this.running.end(delivery);
    if (this.leases.settle(delivery)) this.ends.add(outcome);
  }

  private hear(told: readonly Outcome[], replies: Promise<unknown>[], channel: Channel): Promise<Error | null> {
    return this.ends.hear(told, replies, this.answerMs, () => channel.close());
  }

  async flush(): Promise<void> {
    while (this.ends.size > 0) await this.tellSome();
  }

  private async tellSome(): Promise<void> {
    if (this.ends.size === 0) return;
    const line = await this.control.open();
    const told = this.ends.take(limits.TELL_AT_ONCE);
    const trouble = await this.hear(told, line.ask(told.map(({ command }) => command)), this.control);
    if (trouble) throw trouble;
    if (this.ends.size > 0) this.ends.ring();
  }

  private async ask(commands: readonly Command[]): Promise<unknown[]> {
    if (commands.length === 0) return [];
    const line = await this.control.open();
    const replies = await within(Promise.all(line.ask(commands)), this.answerMs, 'the server', () =>
      this.control.close(),
    );
    const refused = replies.find((reply) => reply instanceof Error);
    if (refused) throw refused;
    return replies;
  }

  // --- The courier

  carry(): void {
    this.carrying = this.courier();
  }

  private async courier(): Promise<void> {
    let troubles = 0;
    while (!this.isFinishing) {
      try {
        await this.nextWork();
        // First, so that nothing that the server refuses keeps leases from being renewed.
        if (this.wantsBeat || nowMs() >= this.leases.beatAt) await this.beat();
        await this.tellSome();
        if (this.lengths.size > 0) await this.changeLengths();
        troubles = 0;
      } catch (error) {
        this.control.close();
        if (this.isFinishing) return;
        this.boss.trouble(error);
        await this.pause.wait(Math.min(core.troubleMs(++troubles), this.leases.beatMs));
        this.bell.ring();
      }
    }
  }

  private async nextWork(): Promise<void> {
    this.wakesAt = this.wantsBeat ? nowMs() : this.leases.beatAt;
    await this.bell.wait(Math.min(this.wakesAt - nowMs(), LONGEST_TIMER_MS));
    this.ends.disarm();
    this.wakesAt = -Infinity;
  }

  /**
   * The event loop did, for so long (or less than nothing). A handler that blocks it blocks heartbeats, and what was
   * delivered meanwhile may be another worker's now. Returns whether that was for too long.
   */
  stoodStill(ms: number): boolean {
    const harmlessMs = this.leases.look();
    if (this.isFetching) this.stillMs = Math.max(this.stillMs, ms);
    return ms >= Math.max(harmlessMs, limits.STILL_MS);
  }

  private beatSoon(): void {
    this.wantsBeat = true;
    this.bell.ring();
    this.pause.ring();
  }

  private async beat(): Promise<void> {
    this.wantsBeat = false;
    const sentMs = nowMs();
    try {
      await this.touch(core.heartbeats(this.leases.all()), sentMs, () => {});
    } catch (error) {
      this.wantsBeat = true;
      throw error;
    }
    this.leases.beaten(sentMs);
    this.boss.startMore();
  }

  private async changeLengths(): Promise<void> {
    const ours = new Set(this.leases.all());
    const lengths = new Map([...this.lengths].filter(([delivery]) => ours.has(delivery)));
    this.lengths.clear();
    const sentMs = nowMs();
    try {
      await this.touch(core.leases(lengths), sentMs, (delivery) => (delivery.leaseMs = lengths.get(delivery)!));
    } catch (error) {
      if (!(error instanceof Error && isRefusal(error))) for (const [each, ms] of lengths) this.lengths.set(each, ms);
      throw error;
    }
    this.leases.changed(sentMs);
  }

  private async touch(touches: Together[], sentMs: number, each: (delivery: Delivery) => void): Promise<void> {
    const replies = await this.ask(touches.map(([command]) => command));
    for (const [n, [, group]] of touches.entries()) {
      for (const [at, delivery] of group.entries()) {
        if ((replies[n] as unknown[])[at] === null) {
          this.lose(delivery);
          continue;
        }
        each(delivery);
        delivery.isDoubtful = false;
        this.leases.renew(delivery, sentMs);
      }
    }
  }

  // --- Stopping

  /** Ends the fetch that waits. A job that was handed out in that instant is read, and given back. */
  async withdraw(): Promise<void> {
    const late = setTimeout(() => this.waiting.close(), 2 * limits.TOLD_MS);
    try {
      while (this.isFetching) {
        const { clientId } = this.waiting;
        const [reply] = clientId === null ? [null] : await this.ask([['CLIENT', 'UNBLOCK', clientId]]);
        if (typeof reply !== 'number') break;
        await sleep(5);
      }
    } catch {
      // the connection is closed instead
    }
    clearTimeout(late);
    this.waiting.close();
  }

  /** What the server has still to hear; and all that is left goes back to it. In so much time, or not at all. */
  async finish(): Promise<void> {
    const late = setTimeout(() => this.close(), limits.FINISH_MS);
    const until = nowMs() + limits.FINISH_MS;
    this.isFinishing = true;
    this.bell.ring();
    this.pause.ring();
    if (this.carrying && !(await settled([this.carrying], limits.FINISH_MS / 4))) this.control.close();
    await this.carrying;
    const left = this.leases.clear();
    let commands = core.giveBack(left).map(([command]) => command);
    for (let troubles = 0; (commands.length > 0 || this.ends.size > 0) && !this.isClosed;) {
      try {
        await this.ask(commands);
        commands = [];
        this.returned = left.length;
        await this.flush();
      } catch (error) {
        this.control.close();
        if (fatal(error)) break;
        await sleep(Math.min(core.troubleMs(++troubles), Math.max(0, until - nowMs())));
      }
    }
    clearTimeout(late);
    this.close();
  }

  close(): void {
    this.isClosed = true;
    this.release();
  }

  /** Of a worker that only drains, for tests: it keeps no connection. */
  release(): void {
    this.waiting.close();
    this.control.close();
  }
}
