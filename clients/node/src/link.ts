// The queues that are reached by one pair of connections: one that waits, one for the rest.
//
// `supply` fetches, with the acknowledgements of finished jobs in the same write. The *courier* tells the server what no
// fetch took along within a millisecond, and renews leases.

import { Channel } from './channel';
import {
  ANSWER_MS,
  Delivery,
  FINISH_MS,
  Fetches,
  FLUSH_AFTER_MS,
  FLUSH_COUNT,
  giveBack,
  heartbeats,
  type Outcome,
  type Owner,
  SHORTEST_ANSWER_MS,
  SHORTEST_BEAT_MS,
  SLACK_MS,
  TELL_AT_ONCE,
  TOLD_MS,
  troubleMs,
  TURN_MS,
} from './core';
import { type Command, within } from './driver';
import { type Codec, Job } from './job';
import type { Queue } from './queue';
import { afterAll, Bell, nowMs, settled, sleep, turn } from './waiting';

export interface Member {
  queue: Queue;
  key: Buffer;
  weight: number;
}

/** What a link asks of its worker. */
export interface Boss {
  readonly waitMs: number;
  readonly leaseMs: number;
  readonly isDraining: boolean;
  /** How many jobs a link may fetch, when it is its turn; 0 to end. */
  claim(): Promise<number>;
  takeOn(claim: number, found: Delivery[]): void;
  startMore(): void;
  lost(delivery: Delivery): void;
  trouble(error: unknown): void;
  stoodStill(ms: number): void;
  /** Until then, or until the worker stops. */
  rest(ms: number): Promise<void>;
}

const LONGEST_BEAT_MS = 3_600_000;
const STILL_MS = 500;

export class Link implements Owner {
  private readonly waiting: Channel;
  private readonly control: Channel;
  private readonly codecs: Map<string, Codec>;
  private readonly held = new Set<Delivery>();
  /** Settled, and the server has not answered yet. */
  private readonly unheard = new Set<Delivery>();
  private readonly bell = new Bell();
  private readonly pause = new Bell();
  private readonly answerMs: number;
  private readonly beatMs: number;
  private outcomes: Outcome[] = [];
  private isArmed = false;
  private isFetching = false;
  private isFinishing = false;
  private isClosed = false;
  private carrying: Promise<void> | null = null;
  private troubles = 0;
  private beatAt = 0;
  private wantsBeat = false;
  private isSuspect = false;
  /** Of the last fetch. */
  trouble: unknown = null;

  constructor(
    private readonly boss: Boss,
    members: readonly Member[],
    private readonly fetches: Fetches,
  ) {
    const { queue, key } = members[0]!;
    this.waiting = new Channel(queue, key);
    this.control = new Channel(queue, key);
    this.codecs = new Map(members.map((member) => [member.key.toString('latin1'), member.queue.codec]));
    this.answerMs = Math.min(ANSWER_MS, Math.max(boss.leaseMs / 3, SHORTEST_ANSWER_MS));
    this.beatMs = Math.min(LONGEST_BEAT_MS, Math.max(boss.leaseMs / 3, SHORTEST_BEAT_MS));
  }

  // --- Fetching

  /** Fetches as long as the worker works; `linkCount` of them share what may be in hand. */
  async supply(capacity: number, linkCount: number): Promise<void> {
    const waitMs = capacity >= linkCount ? this.boss.waitMs : TURN_MS;
    while (!this.boss.isDraining) {
      // Connects before it claims: a node that is away holds up no other.
      await this.waiting.open().catch((error: unknown) => this.failed(error));
      const claim = this.trouble ? 0 : await this.boss.claim();
      if (claim > 0) this.boss.takeOn(claim, await this.fetch(claim, waitMs));
      if (this.trouble) await this.boss.rest(troubleMs(this.troubles));
      else await turn(); // what is done at once goes along with the next fetch
      this.trouble = null;
    }
  }

  /** Tells what happened since, and waits for jobs. Never rejects. */
  async fetch(count: number, waitMs: number): Promise<Delivery[]> {
    this.isFetching = true;
    try {
      const line = await this.waiting.open();
      if (this.boss.isDraining) return [];
      const told = this.takeOutcomes();
      const replies = line.ask([...told.map(({ command }) => command), this.fetches.command(count, waitMs)]);
      const heard = this.hear(told, replies, this.waiting);
      const last = replies[told.length]!;
      const reply = await within(last, waitMs + SLACK_MS, 'a fetch', () => this.waiting.close());
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
    const found = rows.map((row) => new Delivery(key, row, this));
    for (const delivery of found) {
      delivery.job = new Job(delivery, codec);
      this.held.add(delivery);
    }
    if (this.isSuspect && found.length > 0) this.beatAt = -Infinity;
    this.isSuspect = false;
    return found;
  }

  // --- What the server is told

  private takeOutcomes(count = Infinity): Outcome[] {
    if (this.outcomes.length > count) return this.outcomes.splice(0, count);
    const taken = this.outcomes;
    if (taken.length > 0) this.outcomes = [];
    return taken;
  }

  /** Takes the answers in, and returns an error that was among them. What has none goes back to be told again. Never rejects. */
  private async hear(told: readonly Outcome[], replies: Promise<unknown>[], channel: Channel): Promise<Error | null> {
    if (told.length === 0) return null;
    let trouble: Error | null = null;
    const again = (outcome: Outcome, error: Error | null) => {
      trouble ??= error;
      this.outcomes.push(outcome);
      this.ring();
    };
    const heard = told.map((outcome, n) =>
      replies[n]!.then(
        (reply) => {
          if (reply instanceof Error) again(outcome, reply);
          else if (!outcome.answered(reply)) again(outcome, null);
          else this.heard(outcome);
        },
        (error: Error) => again(outcome, error),
      ),
    );
    const inTime = afterAll(this.answerMs, () => channel.close());
    await Promise.all(heard).finally(inTime);
    return trouble;
  }

  private heard({ delivery, verdict }: Outcome): void {
    this.unheard.delete(delivery);
    if (verdict === 'lost') this.boss.lost(delivery);
  }

  /** Who takes a delivery out of `held` decides how it ends: its handler, a heartbeat or the stop. */
  settle(delivery: Delivery, outcome: Outcome): void {
    if (!this.held.delete(delivery)) return;
    this.unheard.add(delivery);
    this.outcomes.push(outcome);
    this.ring();
  }

  /** In a millisecond, so that a fetch may take them along; at once where there are many. */
  private ring(): void {
    if (this.outcomes.length >= FLUSH_COUNT) {
      this.bell.ring();
    } else if (!this.isArmed) {
      this.isArmed = true;
      setTimeout(() => this.bell.ring(), FLUSH_AFTER_MS);
    }
  }

  async flush(): Promise<void> {
    while (this.outcomes.length > 0) await this.tellSome();
  }

  private async tellSome(): Promise<void> {
    if (this.outcomes.length === 0) return;
    const line = await this.control.open();
    const told = this.takeOutcomes(TELL_AT_ONCE);
    const trouble = await this.hear(told, line.ask(told.map(({ command }) => command)), this.control);
    if (trouble) throw trouble;
    if (this.outcomes.length > 0) this.ring();
  }

  private async ask(commands: readonly Command[]): Promise<unknown[]> {
    const line = await this.control.open();
    const replies = Promise.all(line.ask(commands));
    return within(replies, this.answerMs, 'the server', () => this.control.close());
  }

  // --- The courier

  carry(): void {
    this.beatAt = nowMs();
    this.carrying = this.courier();
  }

  private async courier(): Promise<void> {
    let [nextBeat, troubles] = [nowMs() + this.beatMs, 0];
    while (!this.isFinishing) {
      try {
        await this.bell.wait(nextBeat - nowMs());
        this.isArmed = false;
        this.noticeStandstill(nowMs() - nextBeat);
        // First, so that nothing that the server refuses keeps leases from being renewed.
        if (this.wantsBeat || nowMs() >= nextBeat) {
          await this.beat();
          nextBeat = nowMs() + this.beatMs;
        }
        await this.tellSome();
        troubles = 0;
      } catch (error) {
        this.control.close();
        if (this.isFinishing) return;
        this.boss.trouble(error);
        await this.pause.wait(Math.min(troubleMs(++troubles), this.beatMs));
        nextBeat = Math.max(nextBeat, nowMs());
        this.bell.ring();
      }
    }
  }

  /** A handler that blocks the event loop blocks heartbeats: what was delivered meanwhile may be another worker's now. */
  private noticeStandstill(lateMs: number): void {
    if (lateMs < Math.max(this.beatMs, STILL_MS)) return;
    this.isSuspect = this.isFetching;
    this.boss.stoodStill(lateMs);
  }

  /** Whether leases may have ended without our noticing. */
  isStale(): boolean {
    const isStale = this.carrying !== null && nowMs() - this.beatAt > Math.max(this.boss.leaseMs, 2 * STILL_MS);
    if (isStale && !this.wantsBeat) {
      this.wantsBeat = true;
      this.bell.ring();
      this.pause.ring();
    }
    return isStale;
  }

  private async beat(): Promise<void> {
    const at = nowMs();
    const beats = heartbeats([...this.held, ...this.unheard], this.boss.leaseMs);
    const replies = beats.length > 0 ? await this.ask(beats.map(([command]) => command)) : [];
    for (const [n, [, group]] of beats.entries()) {
      const reply = replies[n];
      if (reply instanceof Error) throw reply;
      for (const [at, delivery] of group.entries()) {
        if ((reply as unknown[])[at] === null && this.held.delete(delivery)) this.boss.lost(delivery);
      }
    }
    this.beatAt = at;
    this.wantsBeat = false;
    this.boss.startMore();
  }

  // --- Stopping

  /** Ends the fetch that waits. A job that was handed out in that instant is read, and given back. */
  async withdraw(): Promise<void> {
    const late = setTimeout(() => this.waiting.close(), 2 * TOLD_MS);
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
    const late = setTimeout(() => this.close(), FINISH_MS);
    const until = nowMs() + FINISH_MS;
    this.isFinishing = true;
    this.bell.ring();
    this.pause.ring();
    if (this.carrying && !(await settled([this.carrying], FINISH_MS / 4))) this.control.close();
    await this.carrying;
    let commands = giveBack(this.held);
    this.held.clear();
    for (let troubles = 0; (commands.length > 0 || this.outcomes.length > 0) && !this.isClosed;) {
      try {
        const replies = await this.ask(commands);
        const refused = replies.find((reply) => reply instanceof Error);
        if (refused) throw refused;
        commands = [];
        await this.flush();
      } catch {
        this.control.close();
        await sleep(Math.min(troubleMs(++troubles), Math.max(0, until - nowMs())));
      }
    }
    clearTimeout(late);
    this.close();
  }

  close(): void {
    this.isClosed = true;
    this.waiting.close();
    this.control.close();
  }

  /** Of a worker that only drains, for tests: it keeps no connection. */
  release(): void {
    this.waiting.close();
    this.control.close();
  }
}
