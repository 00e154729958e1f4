package io.github.redisdq;

// Written from docs/libraries.md by `make generated`; DO NOT EDIT.

import java.util.List;

/** What waiting does not mend: what the server's error says, whether it begins with it, and what to do. */
record Fatality(String said, boolean isFirst, String what) {
    static final List<Fatality> ALL = List.of(
            new Fatality(
                    "NOPERM",
                    false,
                    "the server's ACL denies this user what a worker needs: permit the queue's keys and the dq.* commands"),
            new Fatality(
                    "without any password configured",
                    false,
                    "the server has no password for this user: take it out of the URL"),
            new Fatality(
                    "NOAUTH",
                    false,
                    "the server requires a password, and none was given: set it in the URL, redis://user:password@host"),
            new Fatality(
                    "unauthenticated",
                    false,
                    "the server requires a password, and none was given: set it in the URL, redis://user:password@host"),
            new Fatality(
                    "WRONGPASS",
                    false,
                    "the server refuses user name or password: set the right ones in the URL, redis://user:password@host"),
            new Fatality(
                    "unknown command",
                    false,
                    "the server does not have the dq module: load it, with 'loadmodule /path/to/libdq.so' in its configuration"),
            new Fatality(
                    "WRONGTYPE",
                    true,
                    "a queue's key holds a value of another type: choose another name for the queue, or delete that key"),
            new Fatality(
                    "syntax error",
                    true,
                    "the server's dq module is older than this library: upgrade the module"),
            new Fatality(
                    "wrong number of arguments",
                    true,
                    "the server's dq module is older than this library: upgrade the module"),
            new Fatality(
                    "timeout is not a float",
                    true,
                    "the server's dq module is older than this library: upgrade the module"),
            new Fatality(
                    "DB index",
                    false,
                    "the server does not have this database: choose another number in the URL"),
            new Fatality(
                    "invalid DB",
                    false,
                    "the server does not have this database: choose another number in the URL"));
}
