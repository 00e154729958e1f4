// Rules beside handlers: each worker says them when it starts.

import { troubleMs } from './core';
import type { WorkerPool } from './pool';
import { ConfigurationError, EncodingError, Refused } from './errors';
import { fatal, mayNot } from './fatal';
import { HANDLER, type HandlerOptions } from './handler';
import type { Logger } from './hooks';
import type { KindDefaults } from './kind';
import { takes } from './mistakes';
import type { CronOptions, EveryOptions, RuleOptions } from './options';
import type { Queue } from './queue';
import type { Bytes } from './text';

type Own = Omit<HandlerOptions, 'kind' | 'batch' | 'fill'>;

interface Beside<D> extends Own, Pick<RuleOptions, 'until' | 'times' | 'grace' | 'jitter' | 'headers'> {
  /** The job's id; by default the kind. */
  id?: Bytes;
  /** What the job holds; by default null. */
  data?: D;
  /** Options of the job, such as `keep`. All others are those of the handler, or of its rule. */
  defaults?: KindDefaults;
}

/** Options of a handler, and of its rule. */
export type CronHandlerOptions<D = unknown> = Beside<D> & Pick<CronOptions, 'tz'>;
export type EveryHandlerOptions<D = unknown> = Beside<D> & Pick<EveryOptions, 'first'>;

const { kind: _kind, batch: _batch, fill: _fill, ...OWN } = HANDLER;
const RULE = { until: 1, times: 1, grace: 1, jitter: 1, id: 1, data: 1, headers: 1, defaults: 1 } as const;
const NAMES = { cron: { tz: 1, ...RULE, ...OWN }, every: { first: 1, ...RULE, ...OWN } };

type Given = CronHandlerOptions<any> & EveryHandlerOptions<any>;

/** The options of the handler, and those of its rule. */
export function split(call: 'cron' | 'every', kind: string, given: Given) {
  const taken = takes(`worker.${call}`, given, NAMES[call] as Record<keyof Given, 1>);
  const { tz, first, until, times, grace, jitter, id, data, headers, defaults, ...own } = taken;
  const rule = { ...defaults, tz, first, until, times, grace, jitter, headers, id: id ?? kind, kind };
  return { own: { ...own, kind }, data: data ?? null, rule };
}

/** A rule, to be said to the worker's first queue. */
export type Said = (queue: Queue<any>) => Promise<unknown>;

/** Says rules, once the server is there. One that it refuses would be missed when its job should run: it ends the worker. */
export async function say(rules: readonly Said[], queue: Queue<any>, pool: WorkerPool, log: Logger): Promise<void> {
  for (const rule of rules) {
    for (let troubles = 0; !pool.isDraining;) {
      try {
        await rule(queue);
        break;
      } catch (error) {
        if (error instanceof EncodingError) {
          return pool.trouble(new ConfigurationError(error.message, { cause: error }));
        }
        if (error instanceof Refused && isOver(error, pool, log)) break;
        pool.trouble(error);
        await pool.rest(troubleMs(++troubles));
      }
    }
  }
}

/** Whether it is not to be said again. */
function isOver(error: Refused, pool: WorkerPool, log: Logger): boolean {
  const { code, said, message } = error;
  if (mayNot(error)) pool.off('DQ.ADD', 'the rules of handlers are not said', error);
  else if (said.includes('UNTIL is before the first occurrence')) log.info(`dq: a rule is over: ${message}`);
  else if (/^(MAX|OOM)/.test(code)) log.error(`dq: a rule is not said until the next start: ${message}`);
  else if (code === 'ERR' || fatal(error.cause)) pool.trouble(new ConfigurationError(message, { cause: error }));
  else return false;
  return true;
}
