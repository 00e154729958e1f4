// Sends what no fetch takes along within a millisecond, renews leases, and sends the commands of handlers.

import { Channel } from './channel';
import { bytesIn, cutBy, progress } from './commands';
import * as core from './core';
import type { Together } from './core';
import type { Delivery } from './delivery';
import { type Ends, partsOf } from './ends';
import { Cancelled, DqError } from './errors';
import { fatal, isRefusal, refused } from './fatal';
import type { Leases } from './leases';
import * as limits from './limits';
import { reportAt } from './progress';
import { Bell, LONGEST_TIMER_MS, nowMs, settled, sleep, within } from './waiting';
import { type Command, type Driver, isServerError } from './wire';

/** What a batcher needs of its link. */
export interface Round {
  driver(): Promise<Driver>;
  key: Buffer;
  bell: Bell;
  leases: Leases;
  ends: Ends;
  lose(delivery: Delivery): void;
  /** A heartbeat was answered. */
  beaten(): void;
  trouble(error: unknown): void;
}

export class Batcher {
  private readonly control: Channel;
  /** New lengths of leases. */
  private readonly lengths = new Map<Delivery, number>();
  private readonly reports = new Set<Delivery>();
  private readonly pause = new Bell();
  private working: Promise<void> | null = null;
  private isFinishing = false;
  private wantsBeat = false;
  /** When it looks again by itself, unless the bell rings before. */
  wakesAt = -Infinity;

  constructor(private readonly round: Round) {
    this.control = new Channel(
      () => round.driver(),
      round.key,
      () => (this.wantsBeat = true),
    );
  }

  get isCarrying(): boolean {
    return this.working !== null;
  }

  get answerMs(): number {
    return Math.min(limits.ANSWER_MS, Math.max(this.round.leases.shortestMs, limits.SHORTEST_ANSWER_MS));
  }

  carry(): void {
    this.working = this.work();
  }

  private async work(): Promise<void> {
    let troubles = 0;
    while (!this.isFinishing) {
      try {
        // Before it is needed: a server that stands still connects nobody, but later reads what was written.
        await this.control.open();
        await this.nextWork();
        // Heartbeats first, so that a command that the server refuses does not keep leases from being renewed.
        if (this.wantsBeat || nowMs() >= this.round.leases.beatAt) await this.beat();
        await this.tellSome();
        if (this.lengths.size > 0) await this.changeLengths();
        if (this.reports.size > 0) await this.tellReports();
        troubles = 0;
      } catch (error) {
        if (this.isFinishing) return;
        this.control.drop();
        this.round.trouble(error);
        await this.pause.wait(Math.min(core.troubleMs(++troubles), this.round.leases.beatMs));
        this.round.bell.ring();
      }
    }
  }

  private async nextWork(): Promise<void> {
    const reports = [...this.reports].map(reportAt);
    this.wakesAt = this.wantsBeat ? nowMs() : Math.min(this.round.leases.beatAt, ...reports);
    await this.round.bell.wait(Math.min(this.wakesAt - nowMs(), LONGEST_TIMER_MS));
    this.wakesAt = -Infinity;
  }

  // --- Outcomes

  async flush(): Promise<void> {
    while (this.round.ends.size > 0) await this.tellSome();
  }

  private async tellSome(): Promise<void> {
    const { ends } = this.round;
    if (ends.size === 0) return;
    const line = await this.control.open();
    const told = partsOf(ends.take(limits.TELL_AT_ONCE));
    const replies = line.ask(told.flatMap(({ commands }) => commands));
    const trouble = await ends.hear(told, replies, this.answerMs, () => this.control.leave());
    if (trouble) throw trouble;
    if (ends.size > 0) ends.ring();
  }

  async ask(commands: readonly Command[]): Promise<unknown[]> {
    if (commands.length === 0) return [];
    const line = await this.control.open();
    const replies = await within(Promise.all(line.ask(commands)), this.answerMs, 'the server', () =>
      this.control.leave(),
    );
    const refused = replies.find((reply) => reply instanceof Error);
    if (refused) throw refused;
    return replies;
  }

  /**
   * Ends the wait of another connection. Returns false if it does not wait, or is one to another server, which has other
   * numbers; null if it can only be closed.
   */
  async unblock({ clientId, peer }: Channel): Promise<boolean | null> {
    if (clientId === null) return null;
    await this.control.open();
    if (this.control.peer !== peer) return false;
    return (await this.ask([['DQ.UNBLOCK', clientId]]))[0] === 1;
  }

  /** Sends a handler's commands, and tries again while the server is away. */
  async askFor(delivery: Delivery, commands: readonly Command[]): Promise<unknown[]> {
    const bytes = bytesIn(commands);
    let cuts = 0;
    for (let troubles = 0; ;) {
      try {
        return await this.ask(commands);
      } catch (error) {
        // A long command may be why the server cut the connection.
        if (bytes >= limits.CUTTING_BYTES && !isServerError(error) && ++cuts >= limits.MOST_CUTS) {
          throw new DqError(cutBy(cuts, bytes), { cause: error });
        }
        if (isServerError(error) && (isRefusal(error) || fatal(error))) throw refused(error, commands[0]!);
        this.control.drop(); // the key may have moved
        this.round.trouble(error);
        const until = nowMs() + core.troubleMs(++troubles);
        while (!delivery.told && nowMs() < until) await sleep(Math.min(limits.FIRST_TROUBLE_MS, until - nowMs()));
        if (delivery.told) throw new Cancelled(delivery.told);
      }
    }
  }

  // --- Heartbeats

  beatSoon(): void {
    this.wantsBeat = true;
    this.round.bell.ring();
    this.pause.ring();
  }

  private async beat(): Promise<void> {
    const { leases } = this.round;
    this.wantsBeat = false;
    const sentMs = nowMs();
    try {
      await this.touch(core.heartbeats(leases.all()), sentMs, () => {});
    } catch (error) {
      this.wantsBeat = true;
      throw error;
    }
    leases.beaten(sentMs);
    this.round.beaten();
  }

  /** Gives a delivery a lease of another length. */
  relet(delivery: Delivery, leaseMs: number): void {
    if (!this.isCarrying) return;
    this.lengths.set(delivery, leaseMs);
    this.round.bell.ring();
  }

  private async changeLengths(): Promise<void> {
    const lengths = new Map([...this.lengths].filter(([delivery]) => this.round.leases.holds(delivery)));
    this.lengths.clear();
    const sentMs = nowMs();
    try {
      await this.touch(core.leases(lengths), sentMs, (delivery) => (delivery.leaseMs = lengths.get(delivery)!));
    } catch (error) {
      if (!(error instanceof Error && isRefusal(error))) for (const [each, ms] of lengths) this.lengths.set(each, ms);
      throw error;
    }
    this.round.leases.changed(sentMs);
  }

  private async touch(touches: Together[], sentMs: number, each: (delivery: Delivery) => void): Promise<void> {
    const replies = await this.ask(touches.map(([command]) => command));
    for (const [n, [, group]] of touches.entries()) {
      for (const [at, delivery] of group.entries()) {
        if ((replies[n] as unknown[])[at] === null) {
          this.round.lose(delivery);
          continue;
        }
        each(delivery);
        delivery.isDoubtful = false;
        this.round.leases.renew(delivery, sentMs);
      }
    }
  }

  // --- Progress

  report(delivery: Delivery): void {
    this.reports.add(delivery);
    if (reportAt(delivery) < this.wakesAt) this.round.bell.ring();
  }

  private async tellReports(): Promise<void> {
    const line = await this.control.open();
    const held = [...this.reports].filter((delivery) => delivery.progress && this.round.leases.isHeld(delivery));
    const ready = held.filter((delivery) => reportAt(delivery) <= nowMs());
    this.reports.clear();
    for (const delivery of held) if (!ready.includes(delivery)) this.reports.add(delivery);
    const texts = ready.map((delivery) => delivery.progress!);
    for (const delivery of ready) delivery.reportedAt = nowMs();
    const asked = Promise.all(line.ask(ready.map((delivery, n) => progress(delivery, texts[n]!))));
    const answers = within(asked, this.answerMs, 'the server', () => this.control.leave());
    const replies = await answers.catch((error) => {
      for (const delivery of ready) {
        delivery.reportedAt = -Infinity;
        this.reports.add(delivery);
      }
      throw error;
    });
    // If the server refuses one report, the others still count.
    for (const [n, reply] of replies.entries()) this.reported(ready[n]!, texts[n]!, reply);
  }

  /** Until the server has confirmed a report, the job's end sends it once more. */
  private reported(delivery: Delivery, text: Buffer, reply: unknown): void {
    if (reply === null) this.round.lose(delivery);
    if (delivery.progress === text) delivery.progress = null;
    else if (delivery.progress) this.reports.add(delivery);
  }

  // --- Stopping

  /** Begins to stop; what it is doing must end within this time. */
  async finish(ms: number): Promise<void> {
    this.isFinishing = true;
    this.round.bell.ring();
    this.pause.ring();
    if (this.working && !(await settled([this.working], ms))) {
      this.control.leave();
      await this.round.ends.giveUp();
    }
  }

  drop(): void {
    this.control.drop();
  }

  last(commands: readonly Command[]): void {
    this.control.last(commands);
  }

  close(): void {
    this.control.close();
  }
}
