"""What waiting does not mend: what the server's error says, whether it begins with it, and what to do.

Written from docs/libraries.md by `make generated`; DO NOT EDIT.
"""

FATALITIES = (
    (
        "NOPERM",
        False,
        "the server's ACL denies this user what a worker needs: permit the queue's keys and the dq.* commands",
    ),
    (
        "without any password configured",
        False,
        "the server has no password for this user: take it out of the URL",
    ),
    (
        "NOAUTH",
        False,
        "the server requires a password, and none was given: set it in the URL, redis://user:password@host",
    ),
    (
        "unauthenticated",
        False,
        "the server requires a password, and none was given: set it in the URL, redis://user:password@host",
    ),
    (
        "WRONGPASS",
        False,
        "the server refuses user name or password: set the right ones in the URL, redis://user:password@host",
    ),
    (
        "unknown command",
        False,
        "the server does not have the dq module: load it, with 'loadmodule /path/to/libdq.so' in its configuration",
    ),
    (
        "WRONGTYPE",
        True,
        "a queue's key holds a value of another type: choose another name for the queue, or delete that key",
    ),
    (
        "syntax error",
        True,
        "the server's dq module is older than this library: upgrade the module",
    ),
    (
        "wrong number of arguments",
        True,
        "the server's dq module is older than this library: upgrade the module",
    ),
    (
        "timeout is not a float",
        True,
        "the server's dq module is older than this library: upgrade the module",
    ),
    (
        "DB index",
        False,
        "the server does not have this database: choose another number in the URL",
    ),
    (
        "invalid DB",
        False,
        "the server does not have this database: choose another number in the URL",
    ),
)
