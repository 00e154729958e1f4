// Calls the hooks of dead jobs: with one job at a time, beside all else, which goes on whatever they do.

import type { Boss, Member } from './boss';
import { Channel } from './channel';
import { troubleMs } from './core';
import { type Death, Deaths, MOST, PAGE } from './deaths';
import type { Delivery } from './delivery';
import { isRefusal, mayNot } from './fatal';
import type { Guard } from './guard';
import { jobInfo } from './jobinfo';
import { ANSWER_MS, HOOK_LEAST_MS } from './limits';
import type { Link } from './link';
import { Bell, LONGEST_TIMER_MS, nowMs, settled, within } from './waiting';
import { asMap, type Command, isServerError } from './wire';

/** A queue, or a shard, and what reaches it. */
interface Source {
  deaths: Deaths;
  member: Member;
  link: Link;
  /** Of its own: a long reply delays no heartbeat. */
  reading: Channel;
}

export class DeadHook {
  private readonly sources = new Map<Buffer, Source>();
  private readonly list: Death[] = [];
  private readonly listed = new Bell();
  private readonly looks = new Bell();
  private readonly pause = new Bell();
  private calling: Promise<void> = Promise.resolve();
  private isCalling = false;
  /** How many links have not told the server all. */
  private links = 0;
  private isLeft = false;
  private left: () => void = () => {};
  private readonly leaving = new Promise<void>((resolve) => (this.left = resolve));

  constructor(
    private readonly guard: Guard,
    private readonly boss: Boss<Link>,
    private readonly everyMs: number,
  ) {}

  join(link: Link, members: readonly Member[]): void {
    this.links++;
    const { key, queue } = members[0]!;
    const reading = new Channel(
      () => queue.driver(),
      key,
      () => {},
    );
    for (const member of members) {
      const { key } = member;
      const deaths = this.sources.get(key)?.deaths ?? new Deaths(key, this.everyMs, this);
      this.sources.set(key, { deaths, member, link, reading });
    }
  }

  get room(): number {
    return MOST - this.list.length;
  }

  add(death: Death): boolean {
    if (this.room === 0) return false;
    this.list.push(death);
    this.listed.ring();
    return true;
  }

  answered(delivery: Delivery): void {
    this.sources.get(delivery.key)?.deaths.answered(delivery);
  }

  start(): void {
    this.calling = this.callForAll();
    void this.look();
  }

  // --- Looking

  private async look(): Promise<void> {
    for (let troubles = 0; !this.boss.isDraining;) {
      troubles = (await this.lookOnce()) ? 0 : troubles + 1;
      const restMs = troubles > 0 ? troubleMs(troubles) : this.nextAt - nowMs();
      await this.looks.wait(Math.min(restMs, LONGEST_TIMER_MS));
    }
  }

  private get nextAt(): number {
    return Math.min(...[...this.sources.values()].map(({ deaths }) => deaths.nextAt));
  }

  /** One question about each queue. Returns false if a server is away. */
  private async lookOnce(): Promise<boolean> {
    let isWell = true;
    for (const { deaths, link } of this.sources.values()) {
      const command = deaths.asks(nowMs());
      if (!command) continue;
      try {
        const reply = command[0] === 'TIME' ? await timeOf(link) : (await link.tell([command]))[0];
        deaths.heard(reply, nowMs());
      } catch (error) {
        if (this.isRefused(error, command)) deaths.refused();
        else isWell = false;
      }
    }
    return isWell;
  }

  /** Whether the server will not answer that. Else it is away. */
  private isRefused(error: unknown, [name]: Command): boolean {
    if (!isServerError(error) || !(mayNot(error) || isRefusal(error))) {
      this.boss.trouble(error);
      return false;
    }
    const then = name === 'DQ.GET' ? 'is not called' : 'misses jobs that died with their lease, or with another job';
    this.boss.off(name, `the hook dead ${then}`, error);
    return true;
  }

  // --- Calling

  private async callForAll(): Promise<void> {
    while (!this.isLeft) {
      const death = this.list.shift();
      if (death) await this.call(death);
      else if (this.links === 0) return;
      else await this.listed.wait(LONGEST_TIMER_MS);
    }
  }

  private async call(death: Death): Promise<void> {
    if (this.room === PAGE) this.looks.ring();
    const { member, reading } = this.sources.get(death.of.key)!;
    this.isCalling = true;
    const fields = await death.of.record(death, (id, ...rest) =>
      this.read(reading, ['DQ.GET', member.key, id, ...rest]),
    );
    const job = jobInfo(fields, member.queue.codec);
    if (job && !this.isLeft) await this.guard.died(member.queue.name, job);
    this.isCalling = false;
  }

  private async read(reading: Channel, command: Command): Promise<Map<string, unknown> | null> {
    for (let troubles = 0; !this.isLeft;) {
      try {
        const [answer] = (await reading.open()).ask([command]);
        const reply = await within(answer!, ANSWER_MS, 'the server', () => reading.close());
        if (reply instanceof Error) throw reply;
        return asMap(reply);
      } catch (error) {
        reading.close(); // the key may have moved
        if (this.isRefused(error, command)) break;
        await this.pause.wait(troubleMs(++troubles));
      }
    }
    return null;
  }

  // --- Stopping

  /** A link has told the server all. Waits until the hook was called for all, or is left. */
  async finish(): Promise<void> {
    this.links--;
    this.looks.ring();
    this.listed.ring();
    await Promise.race([this.calling, this.leaving]);
    this.close();
  }

  /** Goes on without it, a little later, if it has not ended. */
  async leave(): Promise<void> {
    const isBusy = () => this.isCalling || this.list.length > 0;
    if (isBusy()) await settled([this.calling], HOOK_LEAST_MS);
    if (isBusy()) this.guard.log.warn('dq: stopped without the hook dead: it has not ended, and is called no more');
    this.isLeft = true;
    this.left();
    for (const bell of [this.looks, this.listed, this.pause]) bell.ring();
  }

  private close(): void {
    for (const { reading } of this.sources.values()) reading.close();
  }

  // --- For tests

  /** Finds the deaths of now, and calls for them. */
  async drain(): Promise<void> {
    for (const { deaths } of this.sources.values()) deaths.again();
    do {
      if (!(await this.lookOnce())) break;
      while (this.list.length > 0) await this.call(this.list.shift()!);
    } while (this.nextAt <= nowMs());
    this.close();
  }
}

/** The server's time, or that of its clock for tests. */
async function timeOf(link: Link): Promise<number> {
  try {
    return Number((await link.tell([['DQ.CLOCK', 'GET']]))[0]);
  } catch (error) {
    if (!isServerError(error)) throw error;
  }
  const [seconds, micros] = (await link.tell([['TIME']]))[0] as [unknown, unknown];
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}
