// Written from docs/libraries.md by `make generated`; DO NOT EDIT.

/** What waiting does not mend: what the server's error says, whether it begins with it, and what to do. */
export const FATALITIES: readonly { said: string; isFirst: boolean; what: string }[] = [
  {
    said: 'NOPERM',
    isFirst: false,
    what: "the server's ACL denies this user what a worker needs: permit the queue's keys and the dq.* commands",
  },
  {
    said: 'without any password configured',
    isFirst: false,
    what: 'the server has no password for this user: take it out of the URL',
  },
  {
    said: 'NOAUTH',
    isFirst: false,
    what: 'the server requires a password, and none was given: set it in the URL, redis://user:password@host',
  },
  {
    said: 'unauthenticated',
    isFirst: false,
    what: 'the server requires a password, and none was given: set it in the URL, redis://user:password@host',
  },
  {
    said: 'WRONGPASS',
    isFirst: false,
    what: 'the server refuses user name or password: set the right ones in the URL, redis://user:password@host',
  },
  {
    said: 'unknown command',
    isFirst: false,
    what: "the server does not have the dq module: load it, with 'loadmodule /path/to/libdq.so' in its configuration",
  },
  {
    said: 'WRONGTYPE',
    isFirst: true,
    what: "a queue's key holds a value of another type: choose another name for the queue, or delete that key",
  },
  {
    said: 'syntax error',
    isFirst: true,
    what: "the server's dq module is older than this library: upgrade the module",
  },
  {
    said: 'wrong number of arguments',
    isFirst: true,
    what: "the server's dq module is older than this library: upgrade the module",
  },
  {
    said: 'timeout is not a float',
    isFirst: true,
    what: "the server's dq module is older than this library: upgrade the module",
  },
  {
    said: 'DB index',
    isFirst: false,
    what: 'the server does not have this database: choose another number in the URL',
  },
  {
    said: 'invalid DB',
    isFirst: false,
    what: 'the server does not have this database: choose another number in the URL',
  },
];
