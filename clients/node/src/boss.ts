// What a link needs of its worker.

import type { Delivery } from './delivery';
import type { Queue } from './queue';

export interface Member {
  queue: Queue;
  key: Buffer;
  weight: number;
}

export interface Boss<Link> {
  readonly waitMs: number;
  readonly isDraining: boolean;
  /** For how long the event loop has just been blocked, at least. */
  lateMs(): number;
  /** How many jobs the link may fetch, once it is its turn; 0 if the worker stops. */
  claim(link: Link): number | Promise<number>;
  takeOn(link: Link, claim: number, found: Delivery[]): void;
  startMore(): void;
  lost(delivery: Delivery): void;
  /** The job is dead, by the server's answer. */
  died(delivery: Delivery): void;
  /** The link has told the server all. Waits for what needs its connections yet. */
  told(): Promise<void>;
  refused(delivery: Delivery, error: Error, then: string): void;
  /** The server refuses a command that a worker can do without. */
  off(command: string, then: string, error: unknown): void;
  /** Jobs of a queue are ready, and come to nobody. */
  held(queue: string, why: string): void;
  /** Reports an error in a listener of a job's signal. */
  complain(error: unknown): void;
  trouble(error: unknown): void;
  /** Waits for `ms`, or until the worker stops. */
  rest(ms: number): Promise<void>;
}
