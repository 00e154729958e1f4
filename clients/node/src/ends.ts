// Outcomes of deliveries that the server must still be told.

import { bytesIn } from './commands';
import { ack, type Outcome } from './core';
import type { Delivery } from './delivery';
import { FLUSH_AFTER_MS, FLUSH_COUNT, LAST_BYTES } from './limits';
import { afterAll, type Bell, turn } from './waiting';
import type { Command } from './wire';

/** Gets what became of each outcome that was sent. */
export interface Told {
  heard(delivery: Delivery): void;
  lost(delivery: Delivery): void;
  /** It is dead, or may be: the answer was lost. */
  died(delivery: Delivery): void;
  refused(delivery: Delivery, error: Error, then: string): void;
  /** The server does not permit to count deliveries of unknown kinds. */
  uncounted(error: unknown): void;
}

/** What is sent for an outcome, or for several that share one ACK. */
interface Part {
  readonly outcomes: Outcome[];
  commands: readonly Command[];
  /** Its reply is awaited yet. */
  isOpen: boolean;
}

const NONE: readonly Command[] = [];

/** All jobs of a queue that are done without a result share one ACK. */
export function partsOf(told: readonly Outcome[]): Part[] {
  const parts: Part[] = [];
  const acks = new Map<Buffer, Part>();
  for (let n = 0; n < told.length; n++) {
    const outcome = told[n]!;
    const { isPlain } = outcome;
    const ofKey = isPlain ? acks.get(outcome.delivery.key) : undefined;
    if (ofKey) {
      ofKey.outcomes.push(outcome);
      continue;
    }
    const part = { outcomes: [outcome], commands: isPlain ? NONE : outcome.commands, isOpen: true };
    if (isPlain) acks.set(outcome.delivery.key, part);
    parts.push(part);
  }
  for (let n = 0; n < parts.length; n++)
    if (parts[n]!.commands === NONE) parts[n]!.commands = [ack(parts[n]!.outcomes)];
  return parts;
}

export class Ends {
  private outcomes: Outcome[] = [];
  private isArmed = false;
  private areMany = false;
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

  /**
   * Rings the bell: if there are many outcomes after this turn of the loop, else in a millisecond, so that a fetch may take
   * them along.
   */
  ring(): void {
    if (this.outcomes.length >= FLUSH_COUNT) {
      if (!this.areMany) setImmediate(() => this.look());
      this.areMany = true;
    } else if (!this.isArmed) {
      this.isArmed = true;
      setTimeout(() => this.look(), FLUSH_AFTER_MS);
    }
  }

  private look(): void {
    this.isArmed = this.areMany = false;
    if (this.outcomes.length > 0) this.bell.ring();
  }

  /** Reads the replies, and returns one that is an error. Outcomes without a reply are sent again. Never rejects. */
  hear(
    sent: readonly Part[],
    replies: readonly Promise<unknown>[],
    answerMs: number,
    onLate: () => void,
  ): Promise<Error | null> {
    return new Promise((resolve) => {
      let trouble: Error | null = null;
      let left = sent.length;
      if (left === 0) return resolve(null);
      const again = (outcome: Outcome, error: Error) => {
        trouble ??= error;
        this.add(outcome);
      };
      const close = (part: Part) => {
        part.isOpen = false;
        if (--left > 0) return;
        inTime();
        this.waits.delete(giveUp);
        resolve(trouble);
      };
      const settle = (outcome: Outcome, reply: unknown) => {
        if (!(reply instanceof Error)) this.heard(outcome, reply);
        else if (outcome.isRefused(reply)) this.refused(outcome, reply);
        else again(outcome, reply);
      };
      const heard = (part: Part, reply: unknown) => {
        if (!part.isOpen) return;
        const { outcomes } = part;
        const rows = outcomes.length > 1 && Array.isArray(reply) ? reply : null;
        for (let n = 0; n < outcomes.length; n++) settle(outcomes[n]!, rows ? rows[n] : reply);
        close(part);
      };
      const cut = (part: Part, isLate: boolean, error: Error) => {
        if (!part.isOpen) return;
        for (const outcome of part.outcomes) {
          outcome.cut(isLate);
          again(outcome, error);
        }
        close(part);
      };
      const giveUp = () => {
        for (const part of sent) cut(part, true, new Error('the server: no answer in time'));
        onLate();
      };
      this.waits.add(giveUp);
      const inTime = afterAll(answerMs, giveUp);
      for (let n = 0, at = 0; n < sent.length; n++) {
        const part = sent[n]!;
        const { outcomes, commands } = part;
        const reply =
          commands.length === 1 ? replies[at]! : this.answered(outcomes[0]!, replies.slice(at, at + commands.length));
        at += commands.length;
        reply.then(
          (it) => {
            try {
              heard(part, it);
            } catch (error) {
              cut(part, false, error as Error);
            }
          },
          (error: Error) => cut(part, false, error),
        );
      }
    });
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
    const all = await Promise.all(replies);
    const uncounted = outcome.uncounted(all);
    if (uncounted) this.told.uncounted(uncounted);
    return outcome.answer(all);
  }

  private heard(outcome: Outcome, reply: unknown): void {
    this.told.heard(outcome.delivery);
    if (outcome.isLost(reply)) this.told.lost(outcome.delivery);
    else if (outcome.isDead(reply)) this.told.died(outcome.delivery);
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
