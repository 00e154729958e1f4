// Hears within a millisecond that a job was cancelled: a DQ.BTOUCH waits with jobs that have been in hand for a while.

import { Channel } from './channel';
import * as core from './core';
import type { Delivery } from './delivery';
import { fatal, isRefusal } from './fatal';
import { HEAR_AFTER_MS, MOST_LISTENERS } from './limits';
import { LongPoll, type Unblock } from './long-poll';
import { nowMs } from './waiting';
import { type Driver, isServerError } from './wire';

/** What listeners need of their link. */
export interface OfLink {
  driver(): Promise<Driver>;
  isHeld(delivery: Delivery): boolean;
  /** The deliveries that the worker has. */
  held(): Iterable<Delivery>;
  lose(delivery: Delivery): void;
  /** The time between heartbeats. */
  beatMs(): number;
  unblock: Unblock;
  /** The server refuses DQ.BTOUCH: only heartbeats notice cancellations. */
  off(error: Error): void;
}

/** Hears of the jobs of one queue. */
class Listener {
  private covered = new Set<Delivery>();
  private timer: NodeJS.Timeout | null = null;
  private readonly poll: LongPoll;

  constructor(
    private readonly key: Buffer,
    private readonly link: OfLink,
  ) {
    const channel = new Channel(
      () => link.driver(),
      key,
      () => {},
    );
    this.poll = new LongPoll(channel, this, (waiting) => link.unblock(waiting));
  }

  /** A job has come. */
  listen(): void {
    this.timer ??= setTimeout(() => this.look(), HEAR_AFTER_MS);
  }

  /** Covers jobs that have been in hand for some time. Short jobs have ended by then, and cost nothing. */
  private look(): void {
    this.timer = null;
    const since = nowMs() - HEAR_AFTER_MS;
    const held = [...this.link.held()].filter(({ key }) => key === this.key);
    const old = held.filter(({ sinceMs }) => sinceMs <= since);
    const isMore = old.some((delivery) => !this.covered.has(delivery));
    this.covered = new Set(old);
    if (isMore) this.poll.anew();
    if (old.length < held.length) this.listen();
  }

  next() {
    this.asked = [...this.covered].filter((delivery) => this.link.isHeld(delivery));
    if (this.asked.length === 0) return null;
    const waitMs = this.link.beatMs();
    return { command: core.heard(this.key, this.asked, waitMs), waitMs };
  }

  private asked: readonly Delivery[] = [];

  heard(reply: unknown): void {
    for (const [n, deadline] of (reply as unknown[]).entries()) {
      if (deadline === null) this.link.lose(this.asked[n]!);
    }
  }

  failed(error: unknown): boolean {
    if (!isServerError(error) || !(fatal(error) || isRefusal(error))) return true;
    this.link.off(error);
    return false;
  }

  close(): void {
    if (this.timer) clearTimeout(this.timer);
    this.poll.close();
  }
}

export class Listeners {
  private listeners: Map<Buffer, Listener> | null;

  /** Covers at most `MOST_LISTENERS` queues. With more of them, only heartbeats notice cancellations. */
  constructor(
    queues: number,
    private readonly link: OfLink,
  ) {
    this.listeners = queues <= MOST_LISTENERS ? new Map() : null;
  }

  /** A job of this queue has come. */
  listen(key: Buffer): void {
    if (!this.listeners) return;
    let listener = this.listeners.get(key);
    if (!listener) {
      const off = (error: Error) => {
        if (this.listeners) this.link.off(error);
        this.close();
      };
      listener = new Listener(key, { ...this.link, off });
      this.listeners.set(key, listener);
    }
    listener.listen();
  }

  close(): void {
    const listeners = [...(this.listeners?.values() ?? [])];
    this.listeners = null;
    for (const listener of listeners) listener.close();
  }
}
