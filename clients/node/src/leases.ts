// The deliveries that this worker has, and when their leases end by its own clock. A lease counts from the sending of the last
// TOUCH that was answered, or from the reading of the delivery. So a handler is told in time, even if the server is away.

import { Bag } from './bag';
import type { Delivery } from './delivery';
import { LONGEST_BEAT_MS, SHORTEST_BEAT_MS } from './limits';
import { afterAll, nowMs } from './waiting';

/** The time between heartbeats: a third of the lease, within bounds. */
const periodMs = (delivery: Delivery) => Math.min(LONGEST_BEAT_MS, Math.max(delivery.leaseMs / 3, SHORTEST_BEAT_MS));

export class Leases {
  /** Not settled yet. */
  readonly held = new Bag<Delivery>();
  /** Settled, but the server has not replied yet: the lease is still renewed. */
  private readonly unanswered = new Bag<Delivery>();
  private disarm: (() => void) | null = null;
  private armedFor = Infinity;
  /** When a heartbeat is due. */
  beatAt = Infinity;
  /** The shortest time between heartbeats since the last call of `look`: no longer than `beatMs`, which asks all leases. */
  shortestMs = Infinity;

  constructor(
    private readonly onEnd: (delivery: Delivery) => void,
    /** False for a worker that only drains: nothing renews leases, so none ends by time. */
    private readonly isTimed: () => boolean,
  ) {}

  take(delivery: Delivery): void {
    this.held.add(delivery);
    this.renew(delivery, delivery.sinceMs);
    const ms = periodMs(delivery);
    if (delivery.sinceMs + ms < this.beatAt) this.beatAt = delivery.sinceMs + ms;
    if (ms < this.shortestMs) this.shortestMs = ms;
  }

  /** A lease began at `sinceMs`. */
  renew(delivery: Delivery, sinceMs: number): void {
    if (!this.isTimed()) return;
    delivery.endsAt = sinceMs + delivery.leaseMs;
    if (this.held.has(delivery) && delivery.endsAt < this.armedFor) this.arm(delivery.endsAt);
  }

  /** Settles a delivery. False if it is no longer this worker's: then its end does not count. */
  settle(delivery: Delivery): boolean {
    if (this.isOver(delivery) || !this.held.delete(delivery)) return false;
    this.unanswered.add(delivery);
    return true;
  }

  heard(delivery: Delivery): void {
    this.unanswered.delete(delivery);
  }

  isTelling(of?: Delivery): boolean {
    return of ? this.unanswered.has(of) : this.unanswered.size > 0;
  }

  /** False if the delivery was lost or settled already. */
  lose(delivery: Delivery): boolean {
    return this.held.delete(delivery);
  }

  /** Whether the lease has ended. If so, reports it. */
  isOver(delivery: Delivery): boolean {
    if (nowMs() < delivery.endsAt) return false;
    if (this.held.delete(delivery)) this.onEnd(delivery);
    return true;
  }

  /** Neither lost nor settled. */
  isHeld(delivery: Delivery): boolean {
    return this.held.has(delivery);
  }

  /** Whether its lease is renewed. */
  holds(delivery: Delivery): boolean {
    return this.held.has(delivery) || this.unanswered.has(delivery);
  }

  /** Those whose leases are renewed. */
  all(): Delivery[] {
    return [...this.held, ...this.unanswered];
  }

  /** A heartbeat that was sent at `sentMs` was answered. */
  beaten(sentMs: number): void {
    this.beatAt = sentMs + this.beatMs;
  }

  /** Some leases got another length at `sentMs`. */
  changed(sentMs: number): void {
    const { beatMs } = this;
    this.shortestMs = Math.min(this.shortestMs, beatMs);
    this.beatAt = Math.min(this.beatAt, sentMs + beatMs);
  }

  /** The time between heartbeats; Infinity if there is nothing to renew. */
  get beatMs(): number {
    let shortest = Infinity;
    for (const set of [this.held, this.unanswered]) {
      for (const delivery of set) shortest = Math.min(shortest, periodMs(delivery));
    }
    return shortest;
  }

  /** How long the event loop may be blocked without harm, since the last call. */
  look(): number {
    const ms = this.shortestMs;
    this.shortestMs = this.beatMs;
    return ms;
  }

  /** Removes and returns the deliveries to be given back at the stop. */
  clear(): Delivery[] {
    const left = [...this.held];
    for (const delivery of left) this.held.delete(delivery);
    this.stop();
    return left;
  }

  stop(): void {
    this.disarm?.();
    this.disarm = null;
    this.armedFor = Infinity;
  }

  private arm(at: number): void {
    this.stop();
    this.armedFor = at;
    // Not before replies that have arrived already are read.
    this.disarm = afterAll(Math.max(0, at - nowMs()), () => this.sweep());
  }

  private sweep(): void {
    this.armedFor = Infinity;
    let next = Infinity;
    for (const delivery of [...this.held]) {
      if (!this.isOver(delivery)) next = Math.min(next, delivery.endsAt);
    }
    if (next < this.armedFor) this.arm(next);
  }
}
