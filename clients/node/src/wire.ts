// What the library needs of a Redis client, whichever it is.

export type Word = string | number | Buffer;
/** A command. The second word of all of dq's commands is the key. */
export type Command = readonly [name: string, ...words: Word[]];

/** A connection that only its owner uses, and that never reconnects by itself. */
export interface Line {
  /**
   * Sends all commands in one write. Each promise gives a reply, or an error of the server as a value. It rejects if the
   * connection ended before.
   */
  ask(commands: readonly Command[]): Promise<unknown>[];
  /** The server's address, or the nearest to it that the client tells. */
  readonly peer: string;
  /** Whether it keeps the process alive. */
  hold(isHeld: boolean): void;
  close(): void;
}

export interface Driver {
  /**
   * Returns the replies, with bytes as Buffers, and errors of the server as values. `key`: which server gets commands without
   * a key.
   */
  run(commands: readonly Command[], key?: Buffer): Promise<unknown[]>;
  /** Connects to the server that has the key. No timeout of the client's applies to the connection. */
  connect(key: Buffer, timeoutMs: number): Promise<Line>;
  /** Equal for keys that one connection can wait for. */
  reach(key: Buffer): Promise<string>;
  close(): Promise<void>;
}

/** Whether an error comes from the server. Both clients make such errors, and nothing else in that form. */
export function isServerError(error: unknown): error is Error {
  return error instanceof Error && /^-?[A-Z][A-Z0-9]{2,}( |$)/.test(error.message);
}

/** For the `catch` of a command: an error of the server counts as a reply. */
export function asReply(error: unknown): unknown {
  if (isServerError(error)) return error;
  throw error;
}

/** A map of RESP3, in the shapes that clients give it, or the flat list that RESP2 has for it. */
export function asMap(reply: unknown): Map<string, unknown> | null {
  if (reply === null || reply === undefined) return null;
  if (reply instanceof Map) return new Map([...reply].map(([name, value]) => [String(name), value]));
  if (!Array.isArray(reply)) return new Map(Object.entries(reply));
  const map = new Map<string, unknown>();
  for (let at = 0; at + 1 < reply.length; at += 2) map.set(String(reply[at]), reply[at + 1]);
  return map;
}

const numbers = new WeakMap<object, number>();
let last = 0;

/** A text that is equal for the same object only. */
export function identity(client: object): string {
  if (!numbers.has(client)) numbers.set(client, ++last);
  return `client ${numbers.get(client)}`;
}

/** The parts of a URL such as `unix://user:password@/path?db=1`. */
export function unixSocket(url: string) {
  const match = /^unix:\/\/(?:([^:@/]*)(?::([^@/]*))?@)?(\/[^?#]*)(?:\?.*\bdb=(\d+))?/.exec(url);
  if (!match) return null;
  const [username, password, path] = match.slice(1, 4).map((part) => part && decodeURIComponent(part));
  return { path: path!, username: username || undefined, password, db: Number(match[4] ?? 0) };
}

/** The commands in a transaction. */
export const transaction = (commands: readonly Command[]): Command[] => [['MULTI'], ...commands, ['EXEC']];

const ALL = `
local at, reply = 1, nil
while at <= #ARGV do
  local last = at + tonumber(ARGV[at])
  reply = redis.pcall(unpack(ARGV, at + 1, last))
  if type(reply) == 'table' and reply.err then return reply end
  at = last + 1
end
return reply
`;

/**
 * An EVAL of these commands, up to the first one that is refused, whose error is the reply. A transaction would go on: it would
 * give a job back although there was no room for its step.
 */
export const allOrRefused = (key: Word, commands: readonly Command[]): Command => [
  'EVAL',
  ALL,
  1,
  key,
  ...commands.flatMap((command) => [command.length, ...command]),
];
