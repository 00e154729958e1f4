// Progress that handlers report: its text, and when it is sent.

import { bytesOf, shown } from './format';

/** The shortest time between two reports of one job. */
const PERIOD_MS = 1000;

/** Progress as text, such as `0.4 rendering`: a fraction of at most three decimals, and perhaps a text. */
export function progressOf(fraction: number, text: string): Buffer {
  if (typeof fraction !== 'number') throw new TypeError(`progress is a number of 0 to 1, not ${shown(fraction)}`);
  if (!(fraction >= 0 && fraction <= 1)) throw new RangeError(`progress is a number of 0 to 1, not ${fraction}`);
  if (typeof text !== 'string') throw new TypeError(`the text of progress must be a string, not ${shown(text)}`);
  const number = String(Number(fraction.toFixed(3)));
  return bytesOf(text === '' ? number : `${number} ${text}`);
}

interface Reporting {
  readonly progress: Buffer | null;
  readonly reportedAt: number;
}

/** When the next report may be sent; never if there is none. */
export const reportAt = ({ progress, reportedAt }: Reporting): number =>
  progress === null ? Infinity : reportedAt + PERIOD_MS;
