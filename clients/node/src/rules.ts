// All recurring jobs of a program at once.

import { readEnvelope, writeEnvelope } from './codec';
import { takes } from './mistakes';
import * as words from './options';
import type { CronOptions } from './options';
import { Outcomes } from './outcomes';
import { shown } from './format';
import { type Bytes, crc32, toBytes, toText } from './text';
import { between, type Duration, toMs } from './times';
import { asMap, type Command } from './wire';

/** The header with the time at which a rule was said last, and the checksum of what was said. */
const SAID = 'dq:said';
const RECENT_MS = 600_000;
/** How many ids one SCAN looks at, and how many jobs are read at once. */
const STEP = 1000;
const MOST_SHOWN = 10;
/** Removes a job that is still as it was read: one that is said again has another payload. */
const REMOVE = `
local rule = redis.call('DQ.GET', KEYS[1], ARGV[1]) or {}
for at = 1, #rule, 2 do
  if rule[at] == 'payload' and rule[at + 1] == ARGV[2] then
    return redis.call('DQ.DEL', KEYS[1], 'UNRESERVED', 'IDS', 1, ARGV[1])
  end
end
return 0
`;

/** A rule of `rules`: `every` or `cron`, and what those methods take besides. */
export interface NamedRule<T = unknown> extends Omit<CronOptions, 'id'> {
  every?: Duration;
  cron?: string;
  data?: T;
}

const { id: _, ...CRON } = words.CRON;
const RULE: Record<keyof NamedRule, 1> = { every: 1, cron: 1, data: 1, ...CRON };

export interface RulesOptions {
  /**
   * Removes the program's other rules, but none that is reserved, and none that was said within ten minutes, as by workers
   * of the version before. For a deploy.
   */
  prune?: boolean;
  /** Prunes even if there are no rules. */
  allowEmpty?: boolean;
  /** Changes nothing. */
  dryRun?: boolean;
}

/** What `rules` did, or would do: names of rules, in order. */
export interface RuleChanges {
  added: string[];
  changed: string[];
  kept: string[];
  removed: string[];
  /** Rules of the program that the set does not have, and that stay. */
  unknown: string[];
}

interface Said {
  id: Buffer;
  /** The checksum of what is said. */
  sum: string;
  command: Command;
}

export class Rules<T = unknown> extends Outcomes<T> {
  /**
   * Says all recurring jobs of a program, by names, which have no colon: adds those that are new, and changes those that
   * differ. The id of each is `program:name`. A worker's start says its rules, and logs which others there are; a deploy
   * prunes them.
   */
  async rules(
    program: Bytes,
    rules: Readonly<Record<string, NamedRule<T>>>,
    options: RulesOptions = {},
  ): Promise<RuleChanges> {
    const { prune, allowEmpty, dryRun = false } = takes('rules', options, { prune: 1, allowEmpty: 1, dryRun: 1 });
    const prefix = Buffer.concat([toBytes(program, 'a program'), Buffer.from(':')]);
    between('program', prefix.length - 1, 1, 1022, ' bytes');
    const now = Date.now();
    const said = await Promise.all(Object.entries(rules).map(([name, rule]) => this.said(prefix, name, rule, now)));
    const known = await this.run(said.map(({ id }): Command => ['DQ.GET', this.key(id), id]));
    const before = known.map((job) => (job === null ? null : stamp(job).sum));
    if (!dryRun) await this.run(said.map(({ command }) => command));
    const others = (await this.idsOf(prefix)).filter((id) => !said.some((one) => one.id.equals(id)));
    const mayPrune = prune && (said.length > 0 || allowEmpty);
    const removed = mayPrune ? await this.pruned(others, now, dryRun) : [];
    const names = (ids: readonly Buffer[]) => ids.map((id) => toText(id.subarray(prefix.length))).sort();
    const which = (is: (one: Said, sum: string | null) => boolean) =>
      names(said.filter((one, n) => is(one, before[n]!)).map(({ id }) => id));
    const unknown = names(others.filter((id) => !removed.includes(id)));
    this.warn(program, unknown);
    return {
      added: which((_one, sum) => sum === null),
      changed: which((one, sum) => sum !== null && sum !== one.sum),
      kept: which((one, sum) => sum === one.sum),
      removed: names(removed),
      unknown,
    };
  }

  private warn(program: Bytes, names: readonly string[]): void {
    if (names.length === 0) return;
    const more = names.length > MOST_SHOWN ? ` and ${names.length - MOST_SHOWN} more` : '';
    const some = names.slice(0, MOST_SHOWN).map(shown).join(', ');
    const whose = `queue ${this.name} has rules of program ${shown(toText(toBytes(program)))}`;
    this.guard.log.warn(`dq: ${whose} that are not in this set: ${some}${more}`);
  }

  private async said(prefix: Buffer, name: string, given: NamedRule<T>, now: number): Promise<Said> {
    if (name === '' || name.includes(':')) {
      throw new TypeError(`the name of a rule is not empty and has no colon, not ${shown(name)}`);
    }
    const { every, cron, data, ...options } = takes(`rule ${shown(name)}`, given, RULE);
    if ((every === undefined) === (cron === undefined)) throw new TypeError(`rule ${shown(name)} needs every or cron`);
    const when =
      cron === undefined ? ['EVERY', toMs(every!, 'every', 1000)] : ['CRON', cron, ...words.value('TZ', options.tz)];
    const id = words.newId(Buffer.concat([prefix, toBytes(name)]));
    const rule = [...when, ...words.ofRule({ ...options, id })];
    const plain = writeEnvelope(data, options.kind ?? undefined, options.headers);
    const sum = crc32(Buffer.concat([plain, Buffer.from(JSON.stringify([rule, words.saidOf(options)]))]));
    const stamped = { ...options.headers, [SAID]: `${now} ${sum.toString(16)}` };
    const command = await this.ruleCommand(data as T, { ...options, id, headers: stamped }, rule);
    return { id, sum: sum.toString(16), command };
  }

  /** The ids of the program's rules. What has another colon is of a program whose name is longer. */
  private async idsOf(prefix: Buffer): Promise<Buffer[]> {
    const escaped = [...prefix].flatMap((byte) =>
      '*?[\\'.includes(String.fromCharCode(byte)) ? [0x5c, byte] : [byte],
    );
    const match = Buffer.from([...escaped, 0x2a]);
    const found = new Map<string, Buffer>();
    for (const key of this.keys) {
      let cursor = '0';
      do {
        const call: Command = ['DQ.SCAN', key, cursor, 'MATCH', match, 'RECURRING', 'COUNT', STEP];
        const [[next, ids]] = (await this.run([call])) as [[Buffer, Buffer[]]];
        for (const id of ids) if (!id.subarray(prefix.length).includes(':')) found.set(id.toString('latin1'), id);
        cursor = String(next);
      } while (cursor !== '0');
    }
    return [...found.values()];
  }

  /** Those of the jobs that were removed, or would be. */
  private async pruned(ids: readonly Buffer[], now: number, isDry: boolean): Promise<Buffer[]> {
    const removed: Buffer[] = [];
    for (let at = 0; at < ids.length; at += STEP) {
      const some = ids.slice(at, at + STEP);
      const jobs = await this.run(some.map((id): Command => ['DQ.GET', this.key(id), id]));
      const remove = async (id: Buffer, job: unknown) => {
        const key = this.key(id);
        return this.run([['EVAL', REMOVE, 1, key, id, asMap(job)!.get('payload') as Buffer]], key);
      };
      const gone = await Promise.all(
        some.map(async (id, n) => isOld(jobs[n], now) && (isDry || Number((await remove(id, jobs[n]))[0]) > 0)),
      );
      removed.push(...some.filter((_id, n) => gone[n]));
    }
    return removed;
  }
}

function isOld(job: unknown, now: number): boolean {
  if (job === null) return false;
  const { at } = stamp(job);
  return at !== null && now - at >= RECENT_MS && String(asMap(job)!.get('state')) !== 'reserved';
}

/** When `rules` said the job, and its checksum; null and '' if something else added it. */
function stamp(job: unknown): { at: number | null; sum: string } {
  const header = readEnvelope(asMap(job)!.get('payload') as Buffer)?.headers[SAID];
  const [, at, sum] = /^(\d{1,15}) ([0-9a-f]{1,8})$/.exec(String(header)) ?? [];
  return at === undefined ? { at: null, sum: '' } : { at: Number(at), sum: sum! };
}
