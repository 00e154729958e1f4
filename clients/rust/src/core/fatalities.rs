//! Written from docs/libraries.md by `make generated`; DO NOT EDIT.

/// What waiting does not mend: what the server's error says, whether it begins with it, and what to do.
#[rustfmt::skip]
pub(super) const FATALITIES: &[(&str, bool, &str)] = &[
    ("NOPERM", false, "the server's ACL denies this user what a worker needs: permit the queue's keys and the dq.* commands"),
    ("without any password configured", false, "the server has no password for this user: take it out of the URL"),
    ("NOAUTH", false, "the server requires a password, and none was given: set it in the URL, redis://user:password@host"),
    ("unauthenticated", false, "the server requires a password, and none was given: set it in the URL, redis://user:password@host"),
    ("WRONGPASS", false, "the server refuses user name or password: set the right ones in the URL, redis://user:password@host"),
    ("unknown command", false, "the server does not have the dq module: load it, with 'loadmodule /path/to/libdq.so' in its configuration"),
    ("WRONGTYPE", true, "a queue's key holds a value of another type: choose another name for the queue, or delete that key"),
    ("syntax error", true, "the server's dq module is older than this library: upgrade the module"),
    ("wrong number of arguments", true, "the server's dq module is older than this library: upgrade the module"),
    ("timeout is not a float", true, "the server's dq module is older than this library: upgrade the module"),
    ("DB index", false, "the server does not have this database: choose another number in the URL"),
    ("invalid DB", false, "the server does not have this database: choose another number in the URL"),
];
