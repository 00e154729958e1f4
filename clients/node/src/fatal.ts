// Errors that waiting does not fix, and what to do about them.

import { ConfigurationError } from './errors';
import { FATALITIES } from './fatalities';
import { textOf } from './shown';
import { isServerError } from './wire';

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
export const mayNot = (error: unknown): boolean => isServerError(error) && error.message.startsWith('NOPERM');

/** A worker without these cannot work. Without any other command, what needs it fails alone. */
const NEEDED = ['DQ.BPOP', 'DQ.ACK', 'DQ.NACK', 'DQ.TOUCH'];

/** Whether the server will never carry out this command as it was sent. The next command may succeed. */
export const isRefusal = (reply: Error, command = 'DQ.BPOP') =>
  mayNot(reply) ? !NEEDED.includes(command) : /^(ERR|MAXLEN|MAXBYTES) /.test(reply.message) && !fatal(reply);

/** The worker's words about a server without the module, for a queue that only adds; null for other errors. */
export function withoutModule(error: unknown): ConfigurationError | null {
  return isServerError(error) && /^(ERR )?unknown command/.test(error.message) ? fatal(error) : null;
}
