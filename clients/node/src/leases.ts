// The deliveries that are this worker's, and when their leases end by its own clock: counted from when the last TOUCH that
// was answered was sent, or from when the delivery was read. So a handler is told in time, though the server is away.

import type { Delivery } from './delivery';
import { LONGEST_BEAT_MS, SHORTEST_BEAT_MS } from './limits';
import { afterAll, nowMs } from './waiting';

/** A heartbeat comes after a third of a lease. */
const periodMs = (delivery: Delivery) => Math.min(LONGEST_BEAT_MS, Math.max(delivery.leaseMs / 3, SHORTEST_BEAT_MS));

export class Leases {
  /** Not settled yet. */
  private readonly held = new Set<Delivery>();
  /** Settled, and the server has not answered yet: the lease goes on. */
  private readonly unanswered = new Set<Delivery>();
  private disarm: (() => void) | null = null;
  private armedFor = Infinity;
  /** When a heartbeat is due. */
  beatAt = Infinity;
  /** The shortest time between two of them, of leases since `look`. */
  private shortestMs = Infinity;

  constructor(
    private readonly onEnd: (delivery: Delivery) => void,
    /** Of a worker that only drains, none ends by time: nothing renews it. */
    private readonly isTimed: () => boolean,
  ) {}

  take(delivery: Delivery): void {
    this.held.add(delivery);
    this.renew(delivery, nowMs());
    this.beatAt = Math.min(this.beatAt, nowMs() + periodMs(delivery));
    this.shortestMs = Math.min(this.shortestMs, periodMs(delivery));
  }

  /** A lease began at that instant. */
  renew(delivery: Delivery, sinceMs: number): void {
    if (!this.isTimed()) return;
    delivery.endsAt = sinceMs + delivery.leaseMs;
    if (this.held.has(delivery) && delivery.endsAt < this.armedFor) this.arm(delivery.endsAt);
  }

  /** False where it is no longer this worker's. Then its end is nobody's business. */
  settle(delivery: Delivery): boolean {
    if (this.isOver(delivery) || !this.held.delete(delivery)) return false;
    this.unanswered.add(delivery);
    return true;
  }

  heard(delivery: Delivery): void {
    this.unanswered.delete(delivery);
  }

  /** False where it was lost or settled already. */
  lose(delivery: Delivery): boolean {
    return this.held.delete(delivery);
  }

  /** Whether its lease has ended; if so, now everybody knows. */
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

  /** A heartbeat was answered, which was sent then. */
  beaten(sentMs: number): void {
    this.beatAt = sentMs + this.beatMs;
  }

  /** Some leases have another length since. */
  changed(sentMs: number): void {
    this.beatAt = Math.min(this.beatAt, sentMs + this.beatMs);
  }

  /** How far apart heartbeats are; without end where there is nothing to renew. */
  get beatMs(): number {
    let shortest = Infinity;
    for (const set of [this.held, this.unanswered]) {
      for (const delivery of set) shortest = Math.min(shortest, periodMs(delivery));
    }
    return shortest;
  }

  /** How long the event loop may stand still without harm. */
  look(): number {
    const ms = this.shortestMs;
    this.shortestMs = this.beatMs;
    return ms;
  }

  /** What is given back in the end. */
  clear(): Delivery[] {
    const left = [...this.held];
    this.held.clear();
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
    // Not before the answers that are there already were read.
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
