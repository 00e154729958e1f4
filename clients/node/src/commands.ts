// Commands about one delivery.

import type { Delivery } from './delivery';
import { type Corrected, said } from './joboptions';
import type { Command, Word } from './wire';

export const nack = ({ key, id, token }: Delivery, ...options: Word[]): Command => [
  'DQ.NACK',
  key,
  id,
  'TOKEN',
  token,
  ...options,
];

export const step = ({ key, id, token }: Delivery, name: string, value: Word): Command => [
  'DQ.STEP',
  key,
  id,
  token,
  name,
  value,
];

export const correcting = ({ key, id, token }: Delivery, given: Corrected): Command => [
  'DQ.TOUCH',
  key,
  id,
  'TOKEN',
  token,
  ...said(given),
];

export const progress = ({ key, id, token }: Delivery, text: Buffer): Command => [
  'DQ.TOUCH',
  key,
  id,
  'TOKEN',
  token,
  'PROGRESS',
  text,
];

/** The value of a step whose script has ended. Before the script begins, the value is "begun". */
export const ENDED = 'ended';

/**
 * Runs the script if its delivery is current and the step has not ended. The reply is nil if the delivery is not current, 0
 * if the step has ended, and a list with the error if the script failed. The script sees the user's KEYS and ARGV only.
 */
export function once({ key, id, token }: Delivery, name: string, script: string, keys: Word[], args: Word[]): Command {
  return ['EVAL', fenced(script), 1 + keys.length, key, ...keys, id, token, name, ...args];
}

const fenced = (script: string) => `local function ended()
  local job = redis.call('DQ.GET', KEYS[1], ARGV[1])
  for n = 1, #job, 2 do
    if job[n] == 'steps' then
      for m = 1, #job[n + 1], 2 do
        if job[n + 1][m] == ARGV[3] then return job[n + 1][m + 1] == 'ended' end
      end
    end
  end
end
if not redis.call('DQ.TOUCH', KEYS[1], ARGV[1], 'TOKEN', ARGV[2]) then return false end
if redis.call('DQ.SIGNAL', KEYS[1], ARGV[1], ARGV[3], 'begun') == 0 and ended() then return 0 end
local function run(KEYS, ARGV)
${script}
end
local done, why = pcall(run, {unpack(KEYS, 2)}, {unpack(ARGV, 4)})
if not done or type(why) == 'table' and why.err then return {type(why) == 'table' and why.err or tostring(why)} end
redis.call('DQ.STEP', KEYS[1], ARGV[1], ARGV[2], ARGV[3], 'ended')
return 1`;

export const bytesIn = (commands: readonly Command[]): number =>
  commands.flat().reduce<number>((sum, word) => sum + (Buffer.isBuffer(word) ? word.length : String(word).length), 0);

export const cutBy = (times: number, bytes: number) =>
  `the connection was cut ${times} times by commands of ${bytes} bytes`;

/** The reason of a job that is dead although its handler succeeded. */
export const unstorable = (bytes: number) => `result cannot be stored: ${bytes} bytes`;
