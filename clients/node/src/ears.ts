// Hears within a millisecond that a job was cancelled: a DQ.BTOUCH waits with jobs that have been in hand for a while.

import { Channel } from './channel';
import * as core from './core';
import type { Delivery } from './delivery';
import { fatal, isRefusal } from './fatal';
import { HEAR_AFTER_MS, MOST_EARS } from './limits';
import { Standing, type Unblock } from './standing';
import { nowMs } from './waiting';
import { type Driver, isServerError } from './wire';

/** What ears need of their link. */
export interface Listener {
  driver(): Promise<Driver>;
  isHeld(delivery: Delivery): boolean;
  lose(delivery: Delivery): void;
  /** The time between heartbeats. */
  beatMs(): number;
  unblock: Unblock;
  /** The server refuses DQ.BTOUCH: only heartbeats notice cancellations. */
  deaf(error: Error): void;
}

/** Hears of the jobs of one queue. */
class Ear {
  private young: { delivery: Delivery; sinceMs: number }[] = [];
  private covered: Delivery[] = [];
  private timer: NodeJS.Timeout | null = null;
  private readonly standing: Standing;

  constructor(
    private readonly key: Buffer,
    private readonly listener: Listener,
  ) {
    const channel = new Channel(
      () => listener.driver(),
      key,
      () => {},
    );
    this.standing = new Standing(channel, this, (waiting) => listener.unblock(waiting));
  }

  add(delivery: Delivery): void {
    this.young.push({ delivery, sinceMs: nowMs() });
    this.arm();
  }

  private arm(): void {
    this.timer ??= setTimeout(() => this.look(), HEAR_AFTER_MS);
  }

  /** Covers jobs that have been in hand for some time. Short jobs have ended by then, and cost nothing. */
  private look(): void {
    this.timer = null;
    const since = nowMs() - HEAR_AFTER_MS;
    const held = this.young.filter(({ delivery }) => this.listener.isHeld(delivery));
    this.young = held.filter(({ sinceMs }) => sinceMs > since);
    const old = held.filter(({ sinceMs }) => sinceMs <= since);
    this.covered.push(...old.map(({ delivery }) => delivery));
    if (old.length > 0) this.standing.anew();
    if (this.young.length > 0) this.arm();
  }

  next() {
    this.covered = this.covered.filter((delivery) => this.listener.isHeld(delivery));
    if (this.covered.length === 0) return null;
    const waitMs = this.listener.beatMs();
    this.asked = this.covered;
    return { command: core.heard(this.key, this.asked, waitMs), waitMs };
  }

  private asked: readonly Delivery[] = [];

  heard(reply: unknown): void {
    for (const [n, deadline] of (reply as unknown[]).entries()) {
      if (deadline === null) this.listener.lose(this.asked[n]!);
    }
  }

  failed(error: unknown): boolean {
    if (!isServerError(error) || !(fatal(error) || isRefusal(error))) return true;
    this.listener.deaf(error);
    return false;
  }

  close(): void {
    if (this.timer) clearTimeout(this.timer);
    this.standing.close();
  }
}

export class Ears {
  private ears: Map<string, Ear> | null;

  /** Covers at most `MOST_EARS` queues. With more of them, only heartbeats notice cancellations. */
  constructor(
    queues: number,
    private readonly listener: Listener,
  ) {
    this.ears = queues <= MOST_EARS ? new Map() : null;
  }

  add(delivery: Delivery): void {
    if (!this.ears) return;
    const name = delivery.key.toString('latin1');
    let ear = this.ears.get(name);
    if (!ear) {
      const deaf = (error: Error) => {
        if (this.ears) this.listener.deaf(error);
        this.close();
      };
      ear = new Ear(delivery.key, { ...this.listener, deaf });
      this.ears.set(name, ear);
    }
    ear.add(delivery);
  }

  close(): void {
    const ears = [...(this.ears?.values() ?? [])];
    this.ears = null;
    for (const ear of ears) ear.close();
  }
}
