// Waits for the ends of jobs: all waits of a queue share one connection, in DQ.AWAIT.

import { Channel } from './channel';
import { DqError, TimedOut } from './errors';
import { fatal, isRefusal, mayNot, refused } from './fatal';
import type { Logger } from './hooks';
import { ANSWER_MS, WAIT_MS } from './limits';
import { type Ended, endedOf } from './results';
import { textOf } from './format';
import { LongPoll, type Subject, type Unblock } from './long-poll';
import { toText } from './text';
import { LONGEST_TIMER_MS, within } from './waiting';
import { type Command, type Driver, isServerError } from './wire';

interface Waiter {
  resolve(ended: Ended): void;
  reject(error: unknown): void;
}

/** The waits for jobs of one key. */
export class Waits implements Subject {
  private readonly waiters = new Map<string, { id: Buffer; all: Set<Waiter> }>();
  private readonly poll: LongPoll;
  /** For ending waits: it is not the client's, which may speak to another server. */
  private readonly ending: Channel;
  private mayUnblock = true;

  constructor(
    driver: () => Promise<Driver>,
    private readonly key: Buffer,
    private readonly log: Logger,
  ) {
    this.ending = new Channel(driver, key, () => {});
    this.poll = new LongPoll(new Channel(driver, key, () => {}), this, this.unblock);
  }

  /**
   * Waits for a job, and returns how it ended. Rejects with TimedOut, or with the signal's reason. `ms`: what is left of
   * `timeoutMs`.
   */
  wait(id: Buffer, ms: number | null, timeoutMs: number, signal?: AbortSignal): Promise<Ended> {
    const name = id.toString('latin1');
    return new Promise<Ended>((resolve, reject) => {
      const end = (then: () => void) => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', abort);
        this.remove(name, waiter);
        then();
      };
      const waiter = {
        resolve: (ended: Ended) => end(() => resolve(ended)),
        reject: (error: unknown) => end(() => reject(error)),
      };
      const text = `job '${toText(id)}' did not end within ${timeoutMs / 1000} s`;
      const late = () => waiter.reject(new TimedOut(text, toText(id), timeoutMs));
      const abort = () => waiter.reject(signal!.reason);
      const timer = ms === null ? undefined : setTimeout(late, Math.min(ms, LONGEST_TIMER_MS));
      signal?.addEventListener('abort', abort);
      this.add(name, id, waiter);
    });
  }

  private add(name: string, id: Buffer, waiter: Waiter): void {
    const known = this.waiters.get(name);
    if (known) {
      known.all.add(waiter);
    } else {
      this.waiters.set(name, { id, all: new Set([waiter]) });
      this.poll.anew();
    }
  }

  private remove(name: string, waiter: Waiter): void {
    const known = this.waiters.get(name);
    if (!known?.all.delete(waiter) || known.all.size > 0) return;
    this.waiters.delete(name);
    // Ends the command, so that the connection is idle and does not keep the process alive.
    if (this.waiters.size === 0) this.poll.anew();
  }

  next() {
    if (this.waiters.size === 0) return null;
    const ids = [...this.waiters.values()].map(({ id }) => id);
    const command: Command = ['DQ.AWAIT', this.key, String(WAIT_MS / 1000), 'IDS', ids.length, ...ids];
    return { command, waitMs: WAIT_MS };
  }

  heard(reply: unknown): void {
    for (const ended of endedOf((reply ?? []) as unknown[][])) {
      const waiters = this.waiters.get(ended[0].toString('latin1'))?.all ?? [];
      for (const waiter of [...waiters]) waiter.resolve(ended);
    }
  }

  failed(error: unknown): boolean {
    const isOver = isServerError(error) && isRefusal(error);
    const end = fatal(error) ?? (isOver ? refused(error, ['DQ.AWAIT', this.key]) : null);
    if (end) this.reject(end);
    return end === null;
  }

  private readonly unblock: Unblock = async ({ clientId, peer }) => {
    if (clientId === null || !this.mayUnblock) return null;
    const line = await this.ending.open();
    line.hold(false);
    if (this.ending.peer !== peer) {
      this.ending.close();
      return null;
    }
    const [answer] = line.ask([['DQ.UNBLOCK', clientId]]);
    const reply = await within(answer!, ANSWER_MS, 'DQ.UNBLOCK', () => this.ending.close()).catch((error: unknown) => {
      this.ending.close();
      throw error;
    });
    if (isServerError(reply) && mayNot(reply)) {
      this.mayUnblock = false;
      this.log.warn(`dq: the server refuses DQ.UNBLOCK: connections that wait are closed instead (${textOf(reply)})`);
    }
    return this.mayUnblock ? reply === 1 : null;
  };

  private reject(error: unknown): void {
    for (const { all } of [...this.waiters.values()]) for (const waiter of [...all]) waiter.reject(error);
  }

  close(): void {
    this.reject(new DqError('the queue was closed'));
    this.poll.close();
    this.ending.close();
  }
}
