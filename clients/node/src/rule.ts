// The rule of a recurring job, as DQ.GET shows it.

import { maybeNumber, maybeText } from './reading';
import { maybeFromMs } from './times';

/** When a recurring job is due: `every` so many milliseconds, or by the expression `cron`. */
export interface Rule {
  every: number | null;
  cron: string | null;
  tz: string | null;
  until: Date | null;
  times: number | null;
  grace: number | null;
  jitter: number | null;
  /** The instant of the occurrence that comes next or is running. */
  occurrence: Date | null;
  /** How many occurrences have ended. */
  runs: number;
}

export function rule(fields: Map<string, unknown>): Rule | null {
  const get = (name: string): any => fields.get(name) ?? null;
  if (get('every') === null && get('cron') === null) return null;
  return {
    every: maybeNumber(get('every')),
    cron: maybeText(get('cron')),
    tz: maybeText(get('tz')),
    until: maybeFromMs(get('until')),
    times: maybeNumber(get('times')),
    grace: maybeNumber(get('grace')),
    jitter: maybeNumber(get('jitter')),
    occurrence: maybeFromMs(get('occurrence')),
    runs: Number(get('runs')),
  };
}
