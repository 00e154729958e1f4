// What is said to the server of one delivery.

import type { Delivery } from './delivery';
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

export const progress = ({ key, id, token }: Delivery, text: Buffer): Command => [
  'DQ.TOUCH',
  key,
  id,
  'TOKEN',
  token,
  'PROGRESS',
  text,
];

/**
 * The script, if its delivery is still current and the step is not set: nil where it is not, 0 where it is. What the script
 * sees of KEYS and ARGV is the user's own.
 */
export function once({ key, id, token }: Delivery, name: string, script: string, keys: Word[], args: Word[]): Command {
  return ['EVAL', fenced(script), 1 + keys.length, key, ...keys, id, token, name, ...args];
}

const fenced = (script: string) => `local queue, id, token, step = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
if not redis.call('DQ.TOUCH', queue, id, 'TOKEN', token) then return false end
if redis.call('DQ.SIGNAL', queue, id, step) == 0 then return 0 end
local function run(KEYS, ARGV)
${script}
end
run({unpack(KEYS, 2)}, {unpack(ARGV, 4)})
return 1`;
