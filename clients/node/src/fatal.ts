// Which errors no waiting mends, and what to do about them.

import { ConfigurationError } from './errors';
import { FATALITIES } from './fatalities';
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
  const found = FATALITIES.find(({ said, isFirst }) => (isFirst ? text.startsWith(said) : text.includes(said)));
  return found ? new ConfigurationError(`${found.what} (${text})`, { cause: error }) : null;
}

/** Of one command: it cannot be carried out as it is, and the next may. */
export const isRefusal = (reply: Error) => /^(ERR|MAXLEN|MAXBYTES) /.test(reply.message) && !fatal(reply);

/** For who only adds: the same words as of a worker. */
export function withoutModule(error: unknown): ConfigurationError | null {
  return isServerError(error) && /^(ERR )?unknown command/.test(error.message) ? fatal(error) : null;
}
