// Which errors no waiting mends, and what to do about them.

import { ConfigurationError } from './errors';
import { textOf } from './shown';
import { isServerError } from './wire';

/** What cannot become right by waiting, in words that say what to do; null for all else. */
export function fatal(error: unknown): ConfigurationError | null {
  if (error instanceof ConfigurationError) return error;
  if (!isServerError(error)) {
    const isFault = [TypeError, RangeError, ReferenceError, SyntaxError].some((type) => error instanceof type);
    return isFault ? new ConfigurationError(textOf(error), { cause: error }) : null;
  }
  const text = error.message.replace(/^ERR /, '');
  const what = remedy(text);
  return what ? new ConfigurationError(`${what} (${text})`, { cause: error }) : null;
}

/** Of one command: it cannot be carried out as it is, and the next may. */
export const isRefusal = (reply: Error) => /^(ERR|MAXLEN|MAXBYTES) /.test(reply.message) && !fatal(reply);

const NO_MODULE =
  "the server does not have the dq module: load it, with 'loadmodule /path/to/libdq.so' in its configuration";

/** For who only adds: the same words as of a worker. */
export function withoutModule(error: unknown): ConfigurationError | null {
  if (!isServerError(error) || !/^(ERR )?unknown command/i.test(error.message)) return null;
  return new ConfigurationError(`${NO_MODULE} (${error.message.replace(/^ERR /, '')})`, { cause: error });
}

function remedy(text: string): string | null {
  const begins = (...starts: string[]) => starts.some((start) => text.startsWith(start));
  if (begins('NOPERM')) {
    return "the server's ACL denies this user what a worker needs: permit the queue's keys and the dq.* commands";
  }
  if (begins('NOAUTH')) {
    return 'the server requires a password, and none was given: put it into the URL, redis://user:password@host';
  }
  if (begins('WRONGPASS', 'invalid password', 'AUTH ')) {
    return 'the server refuses user name or password: set the right ones in the URL, redis://user:password@host';
  }
  if (/unknown command/i.test(text)) {
    return NO_MODULE;
  }
  if (begins('WRONGTYPE')) {
    return "a queue's key holds a value of another type: choose another name for the queue, or delete that key";
  }
  if (begins('syntax error', 'wrong number of arguments', 'timeout is not a float')) {
    return "the server's dq module is older than this library: upgrade the module";
  }
  if (/DB index|invalid DB/i.test(text)) {
    return 'the server does not have this database: choose another number in the URL';
  }
  return null;
}
