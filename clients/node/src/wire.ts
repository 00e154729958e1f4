// What the rest needs of a Redis client, whichever it is.

export type Word = string | number | Buffer;
/** The second word of all of dq's commands is the key. */
export type Command = readonly [name: string, ...words: Word[]];

/** A connection of its own, that nothing but its owner uses, and that never connects again by itself. */
export interface Line {
  /**
   * Sends all of them in one write. Answers as they come: a reply, an error that the server answers as a value, or a
   * rejection where the connection ended before.
   */
  ask(commands: readonly Command[]): Promise<unknown>[];
  /** Whether it keeps the process from ending. */
  hold(isHeld: boolean): void;
  close(): void;
}

export interface Driver {
  /** The replies, bytes as Buffers; throws the first error. `key`: of commands without one, whose server they are for. */
  run(commands: readonly Command[], key?: Buffer): Promise<unknown[]>;
  /** Connects to the server that has the key. No timeout of the client's own holds on it. */
  connect(key: Buffer, timeoutMs: number): Promise<Line>;
  /** Equal where one connection can wait for both keys. */
  reach(key: Buffer): Promise<string>;
  close(): Promise<void>;
}

/** Both clients make such errors; both say nothing else in that form. */
export function isServerError(error: unknown): error is Error {
  return error instanceof Error && /^-?[A-Z][A-Z0-9]{2,}( |$)/.test(error.message);
}

/** For the `catch` of a command: what the server answered is an answer. */
export function asReply(error: unknown): unknown {
  if (isServerError(error)) return error;
  throw error;
}

/** A map of RESP3, in the shapes that clients give it, or what stands for it in RESP2. */
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

/** Equal for the same object only. */
export function identity(client: object): string {
  if (!numbers.has(client)) numbers.set(client, ++last);
  return `client ${numbers.get(client)}`;
}

/** What `unix://user:password@/path?db=1` says. */
export function unixSocket(url: string) {
  const match = /^unix:\/\/(?:([^:@/]*)(?::([^@/]*))?@)?(\/[^?#]*)(?:\?.*\bdb=(\d+))?/.exec(url);
  if (!match) return null;
  const [username, password, path] = match.slice(1, 4).map((part) => part && decodeURIComponent(part));
  return { path: path!, username: username || undefined, password, db: Number(match[4] ?? 0) };
}

/** Those take effect together or not at all. */
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
 * One command that carries these out up to the first that is refused, whose error is its answer: a transaction would give a
 * job back whose step there was no room for.
 */
export const allOrRefused = (key: Word, commands: readonly Command[]): Command => [
  'EVAL',
  ALL,
  1,
  key,
  ...commands.flatMap((command) => [command.length, ...command]),
];
