// Outcomes of deliveries that the server must still be told.

import { bytesIn } from './commands';
import type { Outcome } from './core';
import type { Delivery } from './delivery';
import { FLUSH_AFTER_MS, FLUSH_COUNT, LAST_BYTES } from './limits';
import { afterAll, type Bell, turn } from './waiting';
import type { Command } from './wire';

/** Gets what became of each outcome that was sent. */
export interface Told {
  heard(delivery: Delivery): void;
  lost(delivery: Delivery): void;
  refused(delivery: Delivery, error: Error, then: string): void;
  /** The server does not permit to count deliveries of unknown kinds. */
  uncounted(error: unknown): void;
}

/** What is sent for an outcome, or for several that share one ACK. */
interface Part {
  readonly outcomes: Outcome[];
  commands: readonly Command[];
}

/** All jobs of a queue that are done without a result share one ACK. */
export function partsOf(told: readonly Outcome[]): Part[] {
  const parts: Part[] = [];
  const acks = new Map<string, Part>();
  for (const outcome of told) {
    const { commands } = outcome;
    const isPlain = commands.length === 1 && commands[0]![0] === 'DQ.ACK' && commands[0]![2] === 'WITHTOKENS';
    const key = isPlain ? outcome.delivery.key.toString('latin1') : '';
    const ack = isPlain ? acks.get(key) : undefined;
    if (ack) {
      ack.outcomes.push(outcome);
      continue;
    }
    const part: Part = { outcomes: [outcome], commands };
    parts.push(part);
    if (isPlain) acks.set(key, part);
  }
  for (const part of acks.values()) {
    const { outcomes } = part;
    const ids = outcomes.flatMap(({ delivery: { id, token } }) => [id, token]);
    part.commands = [['DQ.ACK', outcomes[0]!.delivery.key, 'WITHTOKENS', 'IDS', outcomes.length, ...ids]];
  }
  return parts;
}

export class Ends {
  private outcomes: Outcome[] = [];
  private isArmed = false;
  /** For each write without all replies: what gives up waiting for them. */
  private readonly waits = new Set<() => void>();

  constructor(
    private readonly bell: Bell,
    private readonly told: Told,
  ) {}

  get size(): number {
    return this.outcomes.length;
  }

  take(count = Infinity): Outcome[] {
    if (this.outcomes.length > count) return this.outcomes.splice(0, count);
    const taken = this.outcomes;
    if (taken.length > 0) this.outcomes = [];
    return taken;
  }

  add(outcome: Outcome): void {
    this.outcomes.push(outcome);
    this.ring();
  }

  /** Rings the bell: at once if there are many outcomes, else in a millisecond, so that a fetch may take them along. */
  ring(): void {
    if (this.outcomes.length >= FLUSH_COUNT) {
      this.bell.ring();
    } else if (!this.isArmed) {
      this.isArmed = true;
      setTimeout(() => this.bell.ring(), FLUSH_AFTER_MS);
    }
  }

  /** The bell was heard. */
  disarm(): void {
    this.isArmed = false;
  }

  /** Reads the replies, and returns one that is an error. Outcomes without a reply are sent again. Never rejects. */
  async hear(
    sent: readonly Part[],
    replies: readonly Promise<unknown>[],
    answerMs: number,
    onLate: () => void,
  ): Promise<Error | null> {
    if (sent.length === 0) return null;
    let trouble: Error | null = null;
    const open = new Set(sent.flatMap(({ outcomes }) => outcomes));
    const again = (outcome: Outcome, error: Error) => {
      trouble ??= error;
      this.add(outcome);
    };
    let at = 0;
    const settle = (outcome: Outcome, reply: unknown) => {
      if (!open.delete(outcome)) return;
      if (!(reply instanceof Error)) this.heard(outcome, reply);
      else if (outcome.isRefused(reply)) this.refused(outcome, reply);
      else again(outcome, reply);
    };
    const cut = (outcome: Outcome, error: Error) => {
      if (!open.delete(outcome)) return;
      outcome.cut(false);
      again(outcome, error);
    };
    const heard = sent.map(({ outcomes, commands }) =>
      this.answered(outcomes[0]!, replies.slice(at, (at += commands.length))).then(
        (reply) => {
          const rows = outcomes.length > 1 && Array.isArray(reply) ? reply : null;
          for (const [n, outcome] of outcomes.entries()) settle(outcome, rows ? rows[n] : reply);
        },
        (error: Error) => {
          for (const outcome of outcomes) cut(outcome, error);
        },
      ),
    );
    let giveUp = () => {};
    const late = new Promise<void>((resolve) => (giveUp = resolve)).then(() => {
      for (const outcome of open) {
        outcome.cut(true);
        again(outcome, new Error('the server: no answer in time'));
      }
      open.clear();
      onLate();
    });
    this.waits.add(giveUp);
    const inTime = afterAll(answerMs, giveUp);
    await Promise.race([Promise.all(heard), late]);
    inTime();
    this.waits.delete(giveUp);
    return trouble;
  }

  /** Takes back at once what was sent and has no reply. */
  async giveUp(): Promise<void> {
    for (const giveUp of this.waits) giveUp();
    await turn();
  }

  /** What the server is to know after all when it answers again, the smallest first. Each may be sent twice. */
  last(): Command[] {
    let bytes = 0;
    const sized = this.outcomes.map(({ commands }) => ({ commands, bytes: bytesIn(commands) }));
    const ordered = sized.sort((one, other) => one.bytes - other.bytes);
    return ordered.filter((each) => (bytes += each.bytes) <= LAST_BYTES).flatMap(({ commands }) => commands);
  }

  private async answered(outcome: Outcome, replies: readonly Promise<unknown>[]): Promise<unknown> {
    if (replies.length === 1) return outcome.answer([await replies[0]]);
    const all = await Promise.all(replies);
    const uncounted = outcome.uncounted(all);
    if (uncounted) this.told.uncounted(uncounted);
    return outcome.answer(all);
  }

  private heard(outcome: Outcome, reply: unknown): void {
    this.told.heard(outcome.delivery);
    if (outcome.isLost(reply)) this.told.lost(outcome.delivery);
  }

  /** Asks for less. If nothing less can be asked for, the job comes again when its lease ends. */
  private refused(outcome: Outcome, error: Error): void {
    const less = outcome.isWait ? 'the attempt failed' : 'told once more, with less';
    const isOver = !outcome.refused(error);
    this.told.refused(outcome.delivery, error, isOver ? 'it comes again when its lease ends' : less);
    if (isOver) this.told.heard(outcome.delivery);
    else this.add(outcome);
  }
}
