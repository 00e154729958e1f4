// The queues that one pair of connections serves: one waits for jobs, with the acknowledgements of finished ones in the
// same write; the other is the batcher's, which does the rest.

import type { Boss, Member } from './boss';
import { Channel } from './channel';
import * as core from './core';
import type { Fetches, Outcome } from './core';
import { Batcher } from './batcher';
import { Delivery, type Desk, type Part, type Row } from './delivery';
import { Listeners } from './listeners';
import { Ends, partsOf } from './ends';
import { fatal, mayNot } from './fatal';
import { Idle } from './idle';
import { Leases } from './leases';
import * as limits from './limits';
import * as running from './running';
import { textOf } from './format';
import { TURN_MS } from './scheduler';
import { Bell, nowMs, sleep, turn, within } from './waiting';
import { asMap, type Command, isServerError } from './wire';

export class Link implements Desk {
  private readonly waiting: Channel;
  private readonly batcher: Batcher;
  private readonly members: Map<string, Member>;
  private readonly leases: Leases;
  private readonly ends: Ends;
  private readonly listeners: Listeners;
  private readonly idle: Idle;
  private readonly bell = new Bell();
  private isFetching = false;
  private readonly pause = new Bell(); // after trouble, in `finish`
  private closing: NodeJS.Timeout | undefined;
  private isClosed = false;
  /** What gives back the jobs that are left in hand. */
  private returns: readonly Command[] = [];
  private isRecalling = false;
  private mayUnblock = true;
  private troubles = 0;
  private stillMs = 0; // for how long the event loop was blocked during this fetch
  trouble: unknown = null; // the error of the last fetch
  /** Why the server may not be there; null if it answered the last time, in time. */
  illness: string | null = 'the server has not answered yet';
  returned = 0; // how many jobs the stop gave back

  constructor(
    private readonly boss: Boss<Link>,
    private readonly place: string,
    members: readonly Member[],
    private readonly fetches: Fetches,
  ) {
    const { queue, key } = members[0]!;
    const driver = () => queue.driver();
    const lose = (delivery: Delivery) => this.lose(delivery);
    this.waiting = new Channel(driver, key, () => this.batcher.beatSoon());
    this.members = new Map(members.map((member) => [member.key.toString('latin1'), member]));
    this.leases = new Leases(
      (delivery) => this.boss.lost(delivery),
      () => this.batcher.isCarrying,
    );
    const { leases, bell } = this;
    this.ends = new Ends(bell, {
      heard: (delivery) => leases.heard(delivery),
      lost: (delivery) => this.boss.lost(delivery),
      died: (delivery) => this.boss.died(delivery),
      refused: (delivery, error, then) => this.boss.refused(delivery, error, then),
      uncounted: (error) => this.boss.off('DQ.STEP', 'jobs of unknown kinds use up attempts of handlers', error),
    });
    this.batcher = new Batcher({
      driver,
      key,
      bell,
      leases,
      ends: this.ends,
      lose,
      beaten: () => this.beaten(),
      trouble: (error) => this.ill(error),
    });
    this.listeners = new Listeners(members.length, {
      driver,
      lose,
      isHeld: (delivery) => leases.isHeld(delivery),
      held: () => leases.held,
      beatMs: () => leases.beatMs,
      unblock: (waiting) => this.unblock(waiting),
      off: (error) => this.boss.off('DQ.BTOUCH', 'jobs that are cancelled are told at the next heartbeat', error),
    });
    this.idle = new Idle(members, boss);
  }

  // --- Fetching

  /** Fetches until the worker stops. `isOnly`: no other link needs its places. */
  async supply(isOnly: boolean): Promise<void> {
    while (!this.boss.isDraining) {
      // Connects before it claims places, so that a server that is away holds none of them.
      if (!this.waiting.opened) await this.waiting.open().catch((error: unknown) => this.failed(error));
      const claimed = this.trouble ? 0 : this.boss.claim(this);
      const claim = typeof claimed === 'number' ? claimed : await claimed;
      // The first fetch does not wait long, to learn soon whether the server answers.
      // One that fills would end with a batch that is not full: there the answer to CLIENT ID says that.
      if (this.fetches.fills && !this.trouble) this.illness = null;
      const waitMs = this.illness === null ? this.longestMs(isOnly) : limits.NO_WAIT_MS;
      if (claim > 0) this.boss.takeOn(this, claim, await this.fetch(claim, waitMs));
      if (this.trouble) await this.boss.rest(core.troubleMs(this.troubles));
      else await turn(); // handlers that end at once go along with the next fetch
      this.trouble = null;
    }
  }

  private longestMs(isOnly: boolean): number {
    const mayLast = isOnly || (this.mayUnblock && this.waiting.clientId !== null);
    return mayLast ? this.boss.waitMs : Math.min(this.boss.waitMs, TURN_MS);
  }

  /** Ends the waiting fetch, as another link needs its places. */
  recall(): void {
    if (!this.isFetching || this.isRecalling || !this.mayUnblock) return;
    this.isRecalling = true;
    this.unblock(this.waiting)
      .catch(() => {}) // the batcher meets the same trouble
      .finally(() => (this.isRecalling = false));
  }

  /** Sends the outcomes since the last fetch, and waits for jobs. Never rejects. */
  async fetch(count: number, waitMs: number): Promise<Delivery[]> {
    this.isFetching = true;
    this.stillMs = 0;
    try {
      const line = this.waiting.opened ?? (await this.waiting.open());
      if (this.boss.isDraining) return [];
      const told = partsOf(this.ends.take());
      const commands: Command[] = [];
      for (let n = 0; n < told.length; n++) commands.push(...told[n]!.commands);
      const asked = this.idle.asks();
      commands.push(...asked, this.fetches.command(count, waitMs, nowMs()));
      const replies = line.ask(commands);
      const close = () => this.waiting.close();
      const heard = this.ends.hear(told, replies, this.batcher.answerMs, close);
      if (asked.length > 0) this.idle.hear(asked, replies.slice(-1 - asked.length));
      const last = replies[replies.length - 1]!;
      const reply = await within(last, waitMs + limits.SLACK_MS, 'a fetch', close);
      const found = this.found(reply); // whatever the other replies say, these jobs are ours now
      this.idle.fetched(found.length > 0);
      this.fetches.fetched(found.length > 0, nowMs());
      const trouble = await heard;
      if (trouble && found.length === 0) throw trouble;
      this.illness = this.trouble = null;
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
    this.ill(error);
  }

  private ill(error: unknown): void {
    this.illness = textOf(error);
    this.boss.trouble(error);
  }

  private member(key: Buffer): Member {
    return this.members.get(key.toString('latin1'))!;
  }

  private found(reply: unknown): Delivery[] {
    if (reply instanceof Error) throw reply;
    if (reply === null) return [];
    const answer = reply as [Buffer, Row[]];
    const rows = answer[1];
    const name = answer[0].toString('latin1');
    const { key, queue } = this.members.get(name)!;
    const place = `${this.place}\n${name}`;
    const now = nowMs();
    const stillMs = Math.max(this.stillMs, this.boss.lateMs());
    const found: Delivery[] = [];
    for (let n = 0; n < rows.length; n++) {
      const delivery = new Delivery(key, rows[n]!, null, queue.codec, this, this.boss.complain);
      if (this.accept(delivery, place, now, stillMs)) found.push(delivery);
    }
    if (this.leases.beatAt < this.batcher.wakesAt) this.bell.ring();
    if (this.batcher.isCarrying && found.length > 0) this.listeners.listen(key);
    return found;
  }

  /** False if this process runs an earlier delivery of the job: the earlier one is lost, the new one is given back. */
  private accept(delivery: Delivery, place: string, now: number, stillMs: number): boolean {
    delivery.sinceMs = now;
    delivery.leaseMs = this.fetches.leaseMs(delivery.ttrMs);
    delivery.isDoubtful = stillMs >= Math.max(delivery.leaseMs / 3, limits.STILL_MS);
    if (delivery.isDoubtful) this.batcher.beatSoon();
    this.leases.take(delivery);
    if (running.enter(delivery, place)) return true;
    this.settle(delivery, core.stillRunning(delivery));
    return false;
  }

  // --- Running jobs

  /** Whether the handler may begin: not without a lease. */
  begin(delivery: Delivery): boolean {
    const isOurs = !delivery.told && !this.leases.isOver(delivery);
    if (isOurs) delivery.hasBegun = true;
    else running.leave(delivery);
    return isOurs;
  }

  relet(delivery: Delivery, leaseMs: number): void {
    this.batcher.relet(delivery, leaseMs);
  }

  lose(delivery: Delivery): void {
    if (this.leases.lose(delivery)) this.boss.lost(delivery);
  }

  // --- Outcomes

  /** Settles a delivery whose handler has not begun, or has ended. */
  settle(delivery: Delivery, outcome: Outcome): void {
    this.leave(delivery);
    this.end(delivery, outcome);
  }

  /** The first to take a delivery out of the leases decides how it ends: its handler, a heartbeat, an expiry or the stop. */
  end(delivery: Delivery, outcome: Outcome): void {
    if (!this.leases.settle(delivery)) return;
    outcome.report ??= core.reported(delivery);
    this.ends.add(outcome);
  }

  /** The handler has ended: this process may run the job again. */
  leave(delivery: Delivery): void {
    running.leave(delivery);
  }

  flush(): Promise<void> {
    return this.batcher.flush();
  }

  private beaten(): void {
    this.illness = null;
    this.boss.startMore();
  }

  /**
   * The event loop was blocked for `ms`, which may be negative. A handler that blocks it blocks heartbeats, and another worker
   * may have what was delivered meanwhile. Returns whether that was too long.
   */
  stoodStill(ms: number): boolean {
    const harmlessMs = this.leases.look();
    if (this.isFetching) this.stillMs = Math.max(this.stillMs, ms);
    return ms >= Math.max(harmlessMs, limits.STILL_MS);
  }

  carry(): void {
    this.batcher.carry();
  }

  /** The server has not confirmed yet how all deliveries ended, or this one. */
  isTelling(of?: Delivery): boolean {
    return this.leases.isTelling(of);
  }

  get isCarrying(): boolean {
    return this.batcher.isCarrying;
  }

  /** Whether the job's last delivery ended without an answer: its handler may have ended its worker. */
  async wasCutShort(delivery: Delivery): Promise<boolean> {
    const { key, id } = delivery;
    try {
      const [reply] = await this.batcher.askFor(delivery, [['DQ.GET', key, id, 'PREFIX', 0]]);
      return String(asMap(reply)?.get('reason') ?? '') === 'lease ended';
    } catch (error) {
      if (mayNot(error)) this.boss.off('DQ.GET', 'jobs that may end their workers are not run alone', error);
      return false;
    }
  }

  // --- Requests

  /** Sends the worker's own commands. Rejects with the server's refusal. */
  async tell(commands: readonly Command[]): Promise<unknown[]> {
    try {
      return await this.batcher.ask(commands);
    } catch (error) {
      const isFinal = isServerError(error) && /^(ERR|NOPERM) /.test(error.message);
      if (!isFinal) this.batcher.drop(); // the key may have moved
      throw error;
    }
  }

  ask(delivery: Delivery, commands: readonly Command[]): Promise<unknown[]> {
    return this.batcher.askFor(delivery, commands);
  }

  report(delivery: Delivery): void {
    this.batcher.report(delivery);
  }

  idLike({ key }: Delivery, id: string): Buffer {
    return this.member(key).queue.idOf(key, id);
  }

  adding({ key }: Delivery, parts: readonly Part[]): Promise<Command[]> {
    return this.member(key).queue.commandsOf(key, parts);
  }

  // --- Stopping

  private async unblock(channel: Channel): Promise<boolean | null> {
    if (!this.mayUnblock) return null;
    try {
      return await this.batcher.unblock(channel);
    } catch (error) {
      if (!mayNot(error)) throw error;
      this.mayUnblock = false;
      this.boss.off('DQ.UNBLOCK', 'connections that wait are closed instead', error);
      return null;
    }
  }

  /**
   * Ends the waiting fetch, within `ms`. A job that is handed out at that moment is read, and given back. While the server is
   * paused the fetch does not wait yet, so this asks again.
   */
  async withdraw(ms: number): Promise<void> {
    const late = setTimeout(() => this.waiting.close(), ms);
    try {
      while (this.isFetching) {
        const isDone = await this.unblock(this.waiting);
        if (isDone === null) break;
        await sleep(isDone ? 5 : limits.UNBLOCK_AGAIN_MS);
      }
    } catch {
      // closed below instead
    }
    clearTimeout(late);
    this.waiting.close();
  }

  /** Sends all outcomes that are left, and gives back all jobs that are left, until it is closed. */
  async finish(): Promise<void> {
    await this.batcher.finish(limits.FINISH_MS / 4);
    const left = this.leases.clear();
    this.returns = core.giveBack(left).map(([command]) => command);
    for (let troubles = 0; (this.returns.length > 0 || this.ends.size > 0) && !this.isClosed;) {
      try {
        await this.batcher.ask(this.returns);
        this.returns = [];
        this.returned = left.length;
        await this.batcher.flush();
      } catch (error) {
        this.batcher.drop();
        if (fatal(error)) break;
        await this.pause.wait(core.troubleMs(++troubles));
      }
    }
    if (!this.isClosed) await this.boss.told();
    this.close();
    await turn(); // for what was said at last
  }

  /** Closes everything if it has not finished until then. */
  closeIn(ms: number): void {
    if (!this.isClosed) this.closing = setTimeout(() => this.close(), ms);
  }

  private close(): void {
    clearTimeout(this.closing);
    if (this.isClosed) return;
    this.isClosed = true;
    this.pause.ring();
    const last = [...this.returns, ...this.ends.last()].map(core.parting);
    if (last.length > 0) this.batcher.last(last);
    this.release();
  }

  /** Closes the connections of a worker that only drains, in tests. */
  release(): void {
    this.listeners.close();
    this.waiting.close();
    this.batcher.close();
  }
}
