// Errors that waiting does not fix, and what to do about them.

import { ConfigurationError, type DqError, QueueFull, Refused } from './errors';
import { FATALITIES } from './fatalities';
import { shown, textOf } from './format';
import { toText } from './text';
import { type Command, isServerError, type Word } from './wire';

/** An error that waiting does not fix, with words that say what to do; null if the error may pass. */
export function fatal(error: unknown): ConfigurationError | null {
  if (error instanceof ConfigurationError) return error;
  if (!isServerError(error)) {
    const isFault = [TypeError, RangeError, ReferenceError, SyntaxError].some((type) => error instanceof type);
    return isFault ? new ConfigurationError(textOf(error), { cause: error }) : null;
  }
  const text = error.message.replace(/^ERR /, '');
  if (/^NOPROTO|^unknown command.*HELLO/i.test(text)) {
    const what = 'the server does not speak RESP3: give its client RESP2 (ioredis: protocol: 2, node-redis: RESP: 2)';
    return new ConfigurationError(`${what} (${text})`, { cause: error });
  }
  const found = FATALITIES.find(({ said, isFirst }) => (isFirst ? text.startsWith(said) : text.includes(said)));
  return found ? new ConfigurationError(`${found.what} (${text})`, { cause: error }) : null;
}

/** The ACL denies this user the command. */
export const mayNot = (error: unknown): boolean =>
  error instanceof Refused ? error.code === 'NOPERM' : isServerError(error) && error.message.startsWith('NOPERM');

/** A worker without these cannot work. Without any other command, what needs it fails alone. */
const NEEDED = ['DQ.BPOP', 'DQ.ACK', 'DQ.NACK', 'DQ.TOUCH'];

/** Whether the server will never carry out this command as it was sent. The next command may succeed. */
export const isRefusal = (reply: Error, command = 'DQ.BPOP') =>
  mayNot(reply) ? !NEEDED.includes(command) : /^(ERR|MAXLEN|MAXBYTES) /.test(reply.message) && !fatal(reply);

/** The worker's words about a server without the module, for a queue that only adds; null for other errors. */
export function withoutModule(error: unknown): ConfigurationError | null {
  return isServerError(error) && /^(ERR )?unknown command/.test(error.message) ? fatal(error) : null;
}

/** Commands that name a job after the key. Those that may name many say so by IDS. */
const OF_A_JOB = ['ADD', 'GET', 'NACK', 'TOUCH', 'STEP', 'SIGNAL', 'EXPLAIN', 'NEXT'].map((word) => `DQ.${word}`);
/** How many bytes of a command's word an error shows. */
const LONGEST_WORD = 1100;

const word = (given: Word): string | number =>
  given instanceof Uint8Array ? toText(given.subarray(0, LONGEST_WORD)) : given;

/** The error that callers get for what the server says to a command. `id`: the job's, where the command does not have it at its usual place. `tail`: what the text adds. */
export function refused(cause: Error, command: Command, id?: Buffer, tail = ''): DqError {
  const fault = withoutModule(cause);
  if (fault) return fault;
  const [, code = 'ERR', said = ''] = /^-?([A-Z][A-Z0-9]+)(?: (.*))?$/s.exec(cause.message) ?? [, , cause.message];
  const [name, ...rest] = command;
  if (name === 'EVAL') rest.splice(0, 2);
  const key = rest.shift() ?? '';
  const isOfMany = rest[0] === 'IDS' && typeof rest[1] === 'number';
  const of = id ?? (OF_A_JOB.includes(name) && !isOfMany ? rest.shift() : undefined);
  const words = said.split(' ');
  const at = rest
    .slice(0, -1)
    .findIndex((each) => typeof each === 'string' && /^[A-Z]+$/.test(each) && words.includes(each));
  const argument = at < 0 ? null : String(rest[at]).toLowerCase();
  const value = at < 0 ? null : word(rest[at + 1]!);
  const job = of === undefined ? null : String(word(of));
  const what = argument === null ? name : `${argument}=${shown(value)}`;
  const queue = name === 'DQ.UNBLOCK' ? '' : `queue ${shown(word(key))}: `; // that names no key
  const text = `${job === null ? '' : `job ${shown(job)} of `}${queue}the server refused ${what}: ${`${code} ${said}`.trim()}${tail}`;
  return new (/^MAX(LEN|BYTES)$/.test(code) ? QueueFull : Refused)(
    text,
    { code, said, id: job, argument, value },
    cause,
  );
}
