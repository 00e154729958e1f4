//! What commands take, as COMMAND DOCS tells it and as it is read: the words of options stand here alone.

use crate::server::api::command_info::Arg;
use std::ffi::CStr;

/// An option with one number.
const fn number(name: &'static CStr, word: &'static CStr, unit: &'static CStr) -> Arg {
    Arg::integer(name).shown(unit).after(word).optional()
}

const fn instant(name: &'static CStr, word: &'static CStr) -> Arg {
    Arg::unix_time(name)
        .shown(c"unix-time-milliseconds")
        .after(word)
}

pub const KEY: Arg = Arg::key(c"key");
pub const ID: Arg = Arg::string(c"id");
pub const IDS: Arg = ID.multiple();
pub const TTR: Arg = number(c"ttr", c"TTR", c"ms");
pub const COUNT: Arg = Arg::integer(c"count").after(c"COUNT");
pub const NOACK: Arg = Arg::word(c"noack", c"NOACK").optional();
pub const WITHDUE: Arg = Arg::word(c"withdue", c"WITHDUE").optional();
/// Which delivery of one job, or which deliveries of several.
pub const DELIVERIES: Arg = Arg::one_of(
    c"jobs",
    &[
        Arg::block(
            c"job",
            &[ID, Arg::string(c"token").after(c"TOKEN").optional()],
        ),
        Arg::block(
            c"ids",
            &[
                Arg::integer(c"numids"),
                Arg::block(c"delivery", &[ID, Arg::string(c"token")]).multiple(),
            ],
        )
        .after(c"IDS")
        .in_place(),
    ],
);
pub const PRIORITY: Arg = Arg::integer(c"priority").after(c"PRIORITY").optional();
pub const ATTEMPTS: Arg = number(c"attempts", c"ATTEMPTS", c"count");
pub const DELAY: Arg = Arg::integer(c"delay").shown(c"ms").after(c"DELAY");
pub const AT: Arg = instant(c"at", c"AT");
pub const BACKOFF: Arg = Arg::block(
    c"backoff",
    &[
        Arg::integer(c"steps").shown(c"count"),
        Arg::integer(c"step").shown(c"ms").optional().multiple(),
    ],
)
.after(c"BACKOFF")
.optional();
pub const STATES: [Arg; 4] = [
    Arg::word(c"delayed", c"DELAYED"),
    Arg::word(c"ready", c"READY"),
    Arg::word(c"reserved", c"RESERVED"),
    Arg::word(c"dead", c"DEAD"),
];
pub const STATE: Arg = Arg::one_of(c"state", &STATES);

pub const RULE: Arg = Arg::block(
    c"rule",
    &[
        Arg::one_of(
            c"pattern",
            &[
                Arg::integer(c"every").shown(c"ms").after(c"EVERY"),
                Arg::block(
                    c"calendar",
                    &[
                        Arg::string(c"expression").after(c"CRON"),
                        Arg::string(c"zone").after(c"TZ").optional(),
                    ],
                ),
            ],
        ),
        instant(c"until", c"UNTIL").optional(),
        number(c"times", c"TIMES", c"count"),
        number(c"grace", c"GRACE", c"ms"),
        number(c"jitter", c"JITTER", c"ms"),
    ],
)
.optional();

pub const ADD: &[Arg] = &[
    KEY,
    Arg::one_of(
        c"id-selector",
        &[Arg::word(c"auto-id", c"*").in_place(), ID],
    ),
    Arg::string(c"payload"),
    Arg::one_of(
        c"condition",
        &[
            Arg::word(c"nx", c"NX"),
            Arg::word(c"xx", c"XX"),
            Arg::word(c"replace", c"REPLACE"),
            Arg::word(c"next", c"NEXT"),
        ],
    )
    .optional(),
    Arg::one_of(c"due", &[DELAY, AT]).optional(),
    PRIORITY,
    TTR,
    ATTEMPTS,
    BACKOFF,
    number(c"ttl", c"TTL", c"ms"),
    Arg::string(c"group").after(c"GROUP").optional(),
    RULE,
];
pub const POP: &[Arg] = &[
    KEY,
    Arg::one_of(c"which", &[COUNT, ID.after(c"ID")]).optional(),
    TTR,
    NOACK,
    WITHDUE,
];
pub const BPOP: &[Arg] = &[
    KEY.multiple(),
    Arg::double(c"timeout").shown(c"seconds"),
    COUNT.optional(),
    TTR,
    NOACK,
    WITHDUE,
];
pub const NACK: &[Arg] = &[
    KEY,
    DELIVERIES,
    DELAY.optional(),
    PRIORITY,
    Arg::one_of(
        c"outcome",
        &[
            Arg::word(c"silent", c"SILENT"),
            Arg::word(c"fail", c"FAIL"),
            Arg::word(c"fatal", c"FATAL"),
        ],
    )
    .optional(),
    Arg::string(c"reason")
        .shown(c"text")
        .after(c"REASON")
        .optional(),
];
pub const TOUCH: &[Arg] = &[KEY, DELIVERIES, TTR];
pub const NEXT: &[Arg] = &[KEY, ID, COUNT.optional()];
pub const PEEK: &[Arg] = &[
    KEY,
    STATE.in_place(),
    instant(c"from", c"FROM").optional(),
    instant(c"to", c"TO").optional(),
    COUNT.optional(),
];
pub const FORECAST: &[Arg] = &[
    KEY,
    instant(c"from", c"FROM"),
    instant(c"to", c"TO"),
    Arg::integer(c"buckets").shown(c"count").after(c"BUCKETS"),
];
pub const SCAN: &[Arg] = &[
    KEY,
    Arg::integer(c"cursor"),
    STATE.after(c"STATE").optional(),
    Arg::pattern(c"pattern").after(c"MATCH").optional(),
    COUNT.optional(),
];
pub const GROUPS: &[Arg] = &[
    KEY,
    Arg::integer(c"cursor"),
    Arg::pattern(c"pattern").after(c"MATCH").optional(),
    COUNT.optional(),
];
pub const LEN: &[Arg] = &[
    KEY,
    Arg::one_of(
        c"of",
        &[
            STATES[0],
            STATES[1],
            STATES[2],
            STATES[3],
            Arg::string(c"group").after(c"GROUP"),
        ],
    )
    .optional(),
];
/// So many deliveries in a time.
const WINDOW: &[Arg] = &[
    Arg::integer(c"deliveries").shown(c"count"),
    Arg::integer(c"window").shown(c"ms"),
];
pub const CFGSET: &[Arg] = &[
    KEY,
    TTR,
    ATTEMPTS,
    BACKOFF,
    number(c"maxlen", c"MAXLEN", c"count"),
    number(c"maxbytes", c"MAXBYTES", c"bytes"),
    number(c"deadlen", c"DEADLEN", c"count"),
    number(c"dedupe", c"DEDUPE", c"ms"),
    number(c"maxreserved", c"MAXRESERVED", c"count"),
    Arg::block(c"rate", WINDOW).after(c"RATE").optional(),
    number(c"groupmax", c"GROUPMAX", c"count"),
    Arg::block(c"grouprate", WINDOW)
        .after(c"GROUPRATE")
        .optional(),
    number(c"groupfifo", c"GROUPFIFO", c"0|1"),
];
