// What a handler's steps mean in this attempt, without I/O: what is kept, and what ends the attempt.

import { type Delivery, OVER, type Suspension } from './delivery';
import { Cancelled, StepError, Suspended, TimedOut } from './errors';
import type { OnDead } from './options';
import { type Ended, readEnded, writeEnded } from './results';
import { shown } from './format';
import { type Bytes, toBytes } from './text';
import type { Command } from './wire';

const LONGEST_NAME = 256;
const OWN = 'dq:';
const WAIT = 'dq:wait:';
const AFTER = 'dq:after:';

/** The value of a step, or the name of a step that must be kept first. */
export type Found = { value: Buffer } | { keep: string };

export class Attempt {
  private readonly used = new Set<string>();
  private joins = 0;

  constructor(private readonly delivery: Delivery) {}

  /** Throws if the attempt or the handler's time is over: nothing that the handler does counts any more. */
  check(): void {
    if (this.delivery.suspension) throw new Suspended();
    if (this.delivery.told) throw new Cancelled(this.delivery.told);
  }

  private suspend(suspension: Suspension): never {
    this.delivery.suspension = suspension;
    throw new Suspended();
  }

  private use(name: string, prefix = ''): string {
    this.check();
    if (typeof name !== 'string' || name === '') throw new TypeError(`a step needs a name, not ${shown(name)}`);
    if (name.startsWith(OWN)) throw new StepError(`the step '${name}': names that begin with ${OWN} are the library's`);
    if (toBytes(prefix + name).length > LONGEST_NAME) throw new StepError(`the step '${name}': its name is too long`);
    if (this.used.has(prefix + name)) {
      throw new StepError(`the step '${name}' is there twice in one attempt: give each step a name of its own`);
    }
    this.used.add(prefix + name);
    return prefix + name;
  }

  /** The value that an earlier attempt kept. */
  step(name: string): Buffer | null {
    return this.delivery.steps.get(this.use(name)) ?? null;
  }

  sleep(name: string, ms: number): void {
    if (!this.delivery.steps.has(this.use(name))) this.suspend({ for: 'sleep', name, ms });
  }

  wait(name: string, ms: number | null): Found {
    const { steps } = this.delivery;
    const marker = WAIT + name;
    const value = steps.get(this.use(name));
    // Once the wait's time was over, it stays over in later attempts.
    const state = steps.get(marker)?.toString();
    if (state === OVER) throw this.late(name, ms ?? 0);
    if (value) return { value };
    if (ms === null) this.suspend({ for: 'signal', name, ms });
    if (state === undefined) this.suspend({ for: 'signal', name, ms, marker });
    return { keep: marker };
  }

  /** The error of a wait for a signal that took too long. */
  late(name: string, ms: number): TimedOut {
    const id = this.delivery.name;
    return new TimedOut(`job '${id}': no signal '${name}' within ${ms / 1000} s`, id, ms);
  }

  /** The name of a `waitFor` or `spawn`; by default its number in this attempt. */
  join(given?: string): string {
    this.joins++;
    return this.use(given ?? String(this.joins), AFTER).slice(AFTER.length);
  }

  /** How the jobs ended, from what is kept or must be kept now. If they have not ended, ends the attempt. */
  after(name: string, ids: readonly Buffer[], onDead: OnDead, adds: readonly Command[] = [], named = ids) {
    const step = AFTER + name;
    const kept = this.delivery.steps.get(step);
    if (kept) return { ended: readEnded(kept, step), keep: null };
    const { results } = this.delivery;
    if (!isOf(results, ids)) this.suspend({ for: 'jobs', ids, onDead, adds, named });
    return { ended: results, keep: { step, value: writeEnded(results) } };
  }

  /** Whether `after` knows how the jobs ended. */
  hasEnded(name: string, ids: readonly Buffer[]): boolean {
    return this.delivery.steps.has(AFTER + name) || isOf(this.delivery.results, ids);
  }
}

function isOf(results: readonly Ended[], ids: readonly Buffer[]): boolean {
  return results.length === ids.length && results.every(([id], n) => id.equals(ids[n]!));
}

/** Ids as the server takes them: at least one, and no duplicates. */
export function idsOf(given: readonly Bytes[]): Buffer[] {
  if (!Array.isArray(given) || given.length === 0) {
    throw new TypeError(`the jobs to wait for must be a list of ids, not ${shown(given)}`);
  }
  const ids = new Map(given.map((id) => [toBytes(id).toString('latin1'), toBytes(id)]));
  return [...ids.values()];
}

/** The handler's steps by name. Values are decoded when they are read. */
export class Steps {
  #names: readonly string[];
  #value: (name: string) => any;

  constructor(steps: ReadonlyMap<string, Buffer>, decode: (value: Buffer, name: string) => any) {
    this.#names = [...steps.keys()].filter((name) => !name.startsWith(OWN));
    this.#value = (name) => decode(steps.get(name)!, name);
  }

  get size(): number {
    return this.#names.length;
  }

  has(name: string): boolean {
    return this.#names.includes(name);
  }

  get(name: string): any {
    return this.has(name) ? this.#value(name) : undefined;
  }

  *entries(): IterableIterator<[string, any]> {
    for (const name of this.#names) yield [name, this.#value(name)];
  }

  keys(): IterableIterator<string> {
    return this.#names.values();
  }

  *values(): IterableIterator<any> {
    for (const name of this.#names) yield this.#value(name);
  }

  [Symbol.iterator](): IterableIterator<[string, any]> {
    return this.entries();
  }
}
