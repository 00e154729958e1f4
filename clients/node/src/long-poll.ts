// A command that waits on a connection of its own, and is sent anew when what it waits for changes.

import type { Channel } from './channel';
import * as core from './core';
import { SLACK_MS } from './limits';
import { Bell, sleep, within } from './waiting';
import type { Command } from './wire';

const AGAIN_MS = 5;

/** Ends the wait of a connection: false if it does not wait, null if it can only be closed. */
export type Unblock = (channel: Channel) => Promise<boolean | null>;

export interface Subject {
  /** The command to send now; null if there is nothing to wait for. */
  next(): { command: Command; waitMs: number } | null;
  heard(reply: unknown): void;
  /** Whether to try again a little later. */
  failed(error: unknown): boolean;
}

export class LongPoll {
  private isLive = false;
  /** What it waits for may have changed since the command was made. */
  private isStale = false;
  /** How many commands were sent: it identifies the current one. */
  private asked = 0;
  private isAsking = false;
  private isWithdrawn = false;
  private isClosed = false;
  private readonly pause = new Bell();

  constructor(
    private readonly channel: Channel,
    private readonly subject: Subject,
    private readonly unblock: Unblock,
  ) {}

  /** What it waits for has changed. */
  anew(): void {
    if (this.isClosed) return;
    this.isStale = true;
    if (!this.isLive) void this.live();
    else if (this.isAsking && !this.isWithdrawn) void this.withdraw(this.asked);
  }

  close(): void {
    this.isClosed = true;
    this.pause.ring();
    this.channel.close();
  }

  /** Sends commands while there is something to wait for. Never rejects. */
  private async live(): Promise<void> {
    this.isLive = true;
    let troubles = 0;
    while (this.isStale && !this.isClosed) {
      try {
        await this.ask();
        troubles = 0;
      } catch (error) {
        this.channel.close();
        if (this.isClosed || !this.subject.failed(error)) break;
        await this.pause.wait(core.troubleMs(++troubles));
      }
    }
    this.isLive = false;
  }

  private async ask(): Promise<void> {
    const line = await this.channel.open();
    line.hold(true);
    try {
      const next = this.subject.next();
      this.isStale = next !== null;
      if (!next) return;
      this.asked++;
      this.isWithdrawn = false;
      this.isAsking = true;
      const [answer] = line.ask([next.command]);
      const reply = await within(answer!, next.waitMs + SLACK_MS, next.command[0], () => this.channel.close());
      this.isAsking = false;
      if (reply instanceof Error) throw reply;
      this.subject.heard(reply);
    } finally {
      this.isAsking = false;
      line.hold(false);
    }
  }

  /** Unblocks the current command. That may not wait yet: then it tries again. */
  private async withdraw(asked: number): Promise<void> {
    this.isWithdrawn = true;
    const isOurs = () => this.isAsking && this.asked === asked && !this.isClosed;
    while (isOurs()) {
      const isDone = await this.unblock(this.channel).catch(() => false);
      if (isDone || !isOurs()) return;
      if (isDone === null) return this.channel.close();
      await sleep(AGAIN_MS);
    }
  }
}
