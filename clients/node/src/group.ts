// One group of a queue, such as a tenant: what it has of its own, its pause and its figures.

import { mayNot } from './fatal';
import { sum } from './keys';
import { takes } from './mistakes';
import * as words from './options';
import { maybeNumber } from './reading';
import { paused } from './records';
import { textOf } from './format';
import { type Bytes, toBytes, toText } from './text';
import { between, type Duration, toMs } from './times';
import { asMap, type Word } from './wire';

/** Settings of a group, which hold instead of the queue's. */
export interface GroupSettings {
  /** How many deliveries its turn lasts; 1 by default. */
  weight?: number;
  /** How many of its jobs may run at a time; 0: any number. */
  max?: number;
  /** How many may begin in a window; [0, 0]: any number. */
  rate?: words.Rate;
  /** How many jobs it may have; 0: any number. */
  maxlen?: number;
}

const SETTINGS: Record<keyof GroupSettings, 1> = { weight: 1, max: 1, rate: 1, maxlen: 1 };

/** Settings and figures of a group. A setting is null where the queue's holds. Durations are milliseconds. */
export interface GroupStats {
  weight: number | null;
  max: number | null;
  rate: [jobs: number, window: Duration] | null;
  maxlen: number | null;
  /** True: until resumed. A Date: until then. */
  paused: boolean | Date;
  /** Delayed and ready jobs. */
  waiting: number;
  reserved: number;
  /** What the deliveries in the window of its rate add up to. */
  rateUsed: number;
}

/** What a group needs of its queue. */
interface Reach {
  each(command: string, ...rest: Word[]): Promise<unknown[]>;
  /** Logs, once, that the server denies this user what a feature needs. */
  off(what: string, why: string): void;
}

/**
 * One group of a queue, on each of its shards, by `Queue.group`. What changes it returns false if the server's ACL denies this
 * user the command, which is logged once.
 */
export class QueueGroup {
  readonly name: string;
  private readonly id: Buffer;

  /** @internal */
  constructor(
    name: Bytes,
    private readonly queue: Reach,
  ) {
    this.id = toBytes(name, "a group's name");
    between('group', this.id.length, 1, 256, ' bytes');
    this.name = toText(this.id);
  }

  /** Gives the group settings of its own. */
  async set(settings: GroupSettings): Promise<boolean> {
    const { weight, max, rate, maxlen } = takes('set', settings, SETTINGS);
    const said = [
      ...words.number('WEIGHT', weight, 1, 1000),
      ...words.amount('MAX', max),
      ...words.rate('RATE', rate),
      ...words.amount('MAXLEN', maxlen),
    ];
    if (said.length === 0) throw new TypeError('set needs a weight, max, rate or maxlen, such as { weight: 3 }');
    return this.changed('DQ.GROUPSET', this.id, ...said);
  }

  /** Takes its settings and its pause away: the queue's settings hold. */
  clear(): Promise<boolean> {
    return this.changed('DQ.GROUPSET', this.id, 'CLEAR');
  }

  /** Passes the group over for `duration`, or until `resume`. */
  async pause(duration?: Duration): Promise<boolean> {
    return this.changed(
      'DQ.PAUSE',
      ...(duration === undefined ? [] : [toMs(duration, 'duration', 1)]),
      'GROUP',
      this.id,
    );
  }

  /** Ends its pause. */
  resume(): Promise<boolean> {
    return this.changed('DQ.RESUME', 'GROUP', this.id);
  }

  /** Its settings and figures; null if it has neither settings nor jobs. */
  async stats(): Promise<GroupStats | null> {
    const replies = (await this.queue.each('DQ.GROUPGET', this.id)).map(asMap);
    const found = replies.filter((each): each is Map<string, any> => each !== null);
    const first = found[0];
    if (!first) return null;
    const total = (name: string) => sum(found.map((each) => each.get(name)));
    const rate = first.get('rate') as unknown[] | null;
    return {
      weight: maybeNumber(first.get('weight')),
      max: maybeNumber(first.get('max')),
      rate: rate && [Number(rate[0]), Number(rate[1])],
      maxlen: maybeNumber(first.get('maxlen')),
      paused: paused(found.map((each) => Number(each.get('paused')))),
      waiting: total('waiting'),
      reserved: total('reserved'),
      rateUsed: total('rate-used'),
    };
  }

  private async changed(command: string, ...rest: Word[]): Promise<boolean> {
    try {
      await this.queue.each(command, ...rest);
      return true;
    } catch (error) {
      if (!mayNot(error)) throw error;
      this.queue.off(`${command} of a group`, textOf(error));
      return false;
    }
  }
}
