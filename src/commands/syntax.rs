//! The arguments of all commands, for COMMAND DOCS and for parsing: commands read their options from these tables.

use crate::queue::attr::{Attr, Kind};
use crate::server::api::command_info::{Arg, OptionWord};
use std::ffi::CStr;

/// The enum `Word` of a command's options, in the order of its table. A word that the table lacks,
/// or that no arm of a `match` handles, does not compile. `[SAID]` stands for each [`Attr`].
macro_rules! options {
    ($table:ident: $($word:ident)*) => {
        #[derive(Clone, Copy, PartialEq, Eq)]
        #[allow(clippy::upper_case_acronyms, reason = "named as they are written")]
        enum Word {
            $($word),*
        }

        impl $crate::commands::parse::Words for Word {
            const ALL: &'static [Self] = &[$(Word::$word),*];
            const KNOWN: &'static [$crate::server::api::command_info::OptionWord] =
                $crate::commands::syntax::options!(@known $table &[$(stringify!($word)),*]);

            fn bit(self) -> u32 {
                1 << self as u32
            }
        }
    };
    ($table:ident: $($word:ident)* [SAID] $($behind:ident)*) => {
        #[derive(Clone, Copy, PartialEq, Eq)]
        #[allow(clippy::upper_case_acronyms, reason = "named as they are written")]
        enum Word {
            $($word,)*
            $($behind,)*
            Said($crate::queue::attr::Attr),
        }

        impl Word {
            const BEFORE: &'static [Self] = &[$(Word::$word),*];
            const BEHIND: &'static [Self] = &[$(Word::$behind),*];
            const SAID: [Self; $crate::commands::syntax::SAID.len()] = {
                use $crate::commands::syntax::SAID;
                let mut all = [Word::Said(SAID[0]); SAID.len()];
                let mut at = 0;
                while at < all.len() {
                    all[at] = Word::Said(SAID[at]);
                    at += 1;
                }
                all
            };
            const LEN: usize = Self::BEFORE.len() + Self::SAID.len() + Self::BEHIND.len();
        }

        impl $crate::commands::parse::Words for Word {
            const ALL: &'static [Self] = {
                use $crate::commands::syntax::joined;
                &joined::<_, { Word::LEN }>([Word::BEFORE, &Word::SAID, Word::BEHIND])
            };
            const KNOWN: &'static [$crate::server::api::command_info::OptionWord] =
                $crate::commands::syntax::options!(@known $table
                    &$crate::commands::syntax::joined::<_, { Word::LEN }>([
                        &[$(stringify!($word)),*],
                        &$crate::commands::syntax::SAID_WORDS,
                        &[$(stringify!($behind)),*],
                    ]));

            #[inline(always)]
            fn bit(self) -> u32 {
                #[allow(clippy::upper_case_acronyms, reason = "as above")]
                enum At {
                    $($word,)*
                    $($behind,)*
                }
                // Its place in ALL, which is what the reader knows of a word.
                match self {
                    $(Word::$word => 1 << At::$word as u32,)*
                    Word::Said(attr) => 1 << (Word::BEFORE.len() as u32 + attr as u32),
                    $(Word::$behind => 1 << ($crate::commands::syntax::SAID.len() as u32 + At::$behind as u32),)*
                }
            }
        }
    };
    (@known $table:ident $names:expr) => {{
        const NAMES: &[&str] = $names;
        const KNOWN: [$crate::server::api::command_info::OptionWord; NAMES.len()] =
            $crate::server::api::command_info::Arg::options($crate::commands::syntax::$table);
        assert!($crate::commands::syntax::are(&KNOWN, NAMES), "options in another order");
        &KNOWN
    }};
}
pub(super) use options;

/// What `[SAID]` stands for.
pub const SAID: &[Attr] = Attr::ALL;

/// Three lists as one.
pub const fn joined<T: Copy, const N: usize>(parts: [&[T]; 3]) -> [T; N] {
    let mut all = [parts[0][0]; N];
    let (mut to, mut part) = (0, 0);
    while part < parts.len() {
        let mut at = 0;
        while at < parts[part].len() {
            all[to] = parts[part][at];
            (to, at) = (to + 1, at + 1);
        }
        part += 1;
    }
    all
}

/// The words of all attributes.
pub const SAID_WORDS: [&str; Attr::ALL.len()] = {
    let mut all = [""; Attr::ALL.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = Attr::ALL[at].row().word();
        at += 1;
    }
    all
};

/// Whether the words have these names.
pub const fn are(words: &[OptionWord], names: &[&str]) -> bool {
    let mut same = words.len() == names.len();
    let mut at = 0;
    while same && at < names.len() {
        same = same_bytes(words[at].text.as_bytes(), names[at].as_bytes());
        at += 1;
    }
    same
}

const fn same_bytes(one: &[u8], other: &[u8]) -> bool {
    let mut same = one.len() == other.len();
    let mut at = 0;
    while same && at < one.len() {
        same = one[at] == other[at];
        at += 1;
    }
    same
}

// Checks that `are` notices a missing word, another order, and another word of the same length.
const _: () = {
    let words: [OptionWord; 2] = Arg::options(&[COUNT, TTR]);
    assert!(are(&words, &["COUNT", "TTR"]));
    assert!(!are(&words, &["COUNT"]));
    assert!(!are(&words, &["TTR", "COUNT"]));
    assert!(!are(&words, &["COUNT", "TTL"]));
};

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
/// Ids behind their number, so that none is read as a word.
pub const COUNTED_IDS: Arg = Arg::block(c"ids", &[Arg::integer(c"numids"), IDS])
    .after(c"IDS")
    .in_place();
/// Ids, or their number and then ids.
pub const JOBS: Arg = Arg::one_of(c"jobs", &[IDS, COUNTED_IDS]);
const DELIVERY: Arg = Arg::block(c"delivery", &[ID, Arg::string(c"token")]).multiple();
const COUNTED_DELIVERIES: Arg = Arg::block(c"ids", &[Arg::integer(c"numids"), DELIVERY])
    .after(c"IDS")
    .in_place();
const OUTCOME: Arg = Arg::block(
    c"outcome",
    &[ID, Arg::string(c"token"), Arg::string(c"result")],
)
.multiple();
pub const TTR: Arg = said(Attr::Ttr);
/// The length of a delivery's lease.
pub const LEASE: Arg = Arg::one_of(
    c"length",
    &[
        Arg::integer(c"ttr").shown(c"ms").after(c"TTR"),
        Arg::integer(c"lease").shown(c"ms").after(c"LEASE"),
    ],
)
.optional();
pub const COUNT: Arg = Arg::integer(c"count").after(c"COUNT");
/// How many bytes are shown of each payload.
const PREFIX: Arg = number(c"prefix", c"PREFIX", c"bytes");
pub const NOACK: Arg = Arg::word(c"noack", c"NOACK").optional();
pub const WITHDUE: Arg = Arg::word(c"withdue", c"WITHDUE").optional();
pub const WITHRESULTS: Arg = Arg::word(c"withresults", c"WITHRESULTS").optional();
pub const WITHSTEPS: Arg = Arg::word(c"withsteps", c"WITHSTEPS").optional();
pub const WITHTERMS: Arg = Arg::word(c"withterms", c"WITHTERMS").optional();
/// Which delivery of one job, or which deliveries of several.
pub const DELIVERIES: Arg = Arg::one_of(
    c"jobs",
    &[
        Arg::block(
            c"job",
            &[ID, Arg::string(c"token").after(c"TOKEN").optional()],
        ),
        COUNTED_DELIVERIES,
    ],
);
pub const ACK: &[Arg] = &[
    KEY,
    Arg::one_of(
        c"jobs",
        &[
            IDS,
            COUNTED_IDS,
            Arg::one_of(c"deliveries", &[DELIVERY, COUNTED_DELIVERIES]).after(c"WITHTOKENS"),
            Arg::one_of(
                c"outcomes",
                &[
                    OUTCOME,
                    Arg::block(c"ids", &[Arg::integer(c"numids"), OUTCOME]).after(c"IDS"),
                ],
            )
            .after(c"RESULTS"),
        ],
    ),
];
pub const PRIORITY: Arg = said(Attr::Priority);
pub const DELAY: Arg = Arg::integer(c"delay").shown(c"ms").after(c"DELAY");
pub const AT: Arg = instant(c"at", c"AT");
const LADDER: &[Arg] = &[
    Arg::integer(c"steps").shown(c"count"),
    Arg::integer(c"step").shown(c"ms").optional().multiple(),
];
const BACKOFF: Arg = Arg::block(c"backoff", LADDER).after(c"BACKOFF").optional();
pub const STATES: [Arg; 6] = [
    Arg::word(c"delayed", c"DELAYED"),
    Arg::word(c"ready", c"READY"),
    Arg::word(c"reserved", c"RESERVED"),
    Arg::word(c"dead", c"DEAD"),
    Arg::word(c"done", c"DONE"),
    Arg::word(c"blocked", c"BLOCKED"),
];
pub const STATE: Arg = Arg::one_of(c"state", &STATES);

/// What a job waits for.
pub const AFTER: Arg = Arg::one_of(
    c"until",
    &[
        Arg::block(c"jobs", &[Arg::integer(c"numids"), IDS]),
        Arg::string(c"group").after(c"GROUP"),
    ],
)
.after(c"AFTER")
.optional();
pub const ONDEAD: Arg = Arg::one_of(
    c"on-dead",
    &[
        Arg::word(c"wait", c"WAIT"),
        Arg::word(c"run", c"RUN"),
        Arg::word(c"die", c"DIE"),
    ],
)
.after(c"ONDEAD")
.optional();

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

/// What DQ.ADD and DQ.MADD say of jobs.
const OF_JOBS: &[Arg] = &joined::<Arg, { 1 + Attr::ALL.len() }>([
    &[Arg::one_of(c"due", &[DELAY, AT]).optional()],
    &{
        let mut all = [KEY; Attr::ALL.len()];
        let mut at = 0;
        while at < all.len() {
            all[at] = said(Attr::ALL[at]);
            at += 1;
        }
        all
    },
    &[],
]);

const fn said(attr: Attr) -> Arg {
    let row = attr.row();
    match row.kind {
        Kind::Number { unit, .. } if same_bytes(unit.to_bytes(), row.name.to_bytes()) => {
            Arg::integer(row.name).after(row.word).optional()
        }
        Kind::Number { unit, .. } => number(row.name, row.word, unit),
        Kind::Text(_) => Arg::string(row.name).after(row.word).optional(),
        Kind::Ladder => BACKOFF,
    }
}

pub const ADD: &[Arg] = &joined::<Arg, { 7 + OF_JOBS.len() }>([
    &[
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
    ],
    OF_JOBS,
    &[AFTER, ONDEAD, RULE],
]);
pub const MADD: &[Arg] = &joined::<Arg, { 4 + OF_JOBS.len() }>([
    &[
        KEY,
        Arg::integer(c"numjobs"),
        Arg::block(
            c"job",
            &[
                Arg::one_of(
                    c"id-selector",
                    &[Arg::word(c"auto-id", c"*").in_place(), ID],
                ),
                Arg::string(c"payload"),
            ],
        )
        .multiple(),
        Arg::one_of(
            c"condition",
            &[
                Arg::word(c"nx", c"NX"),
                Arg::word(c"xx", c"XX"),
                Arg::word(c"replace", c"REPLACE"),
            ],
        )
        .optional(),
    ],
    OF_JOBS,
    &[],
]);
pub const POP: &[Arg] = &[
    KEY,
    Arg::one_of(c"which", &[COUNT, ID.after(c"ID")]).optional(),
    LEASE,
    NOACK,
    WITHDUE,
    WITHRESULTS,
    WITHSTEPS,
    WITHTERMS,
];
/// So many ready jobs, or so long since any was ready.
const FILL: &[Arg] = &[
    Arg::integer(c"jobs").shown(c"count"),
    Arg::integer(c"most").shown(c"ms"),
];
pub const BPOP: &[Arg] = &[
    KEY.multiple(),
    Arg::double(c"timeout").shown(c"seconds"),
    COUNT.optional(),
    Arg::block(c"fill", FILL).after(c"FILL").optional(),
    LEASE,
    NOACK,
    WITHDUE,
    WITHRESULTS,
    WITHSTEPS,
    WITHTERMS,
];
pub const AWAIT: &[Arg] = &[KEY, Arg::double(c"timeout").shown(c"seconds"), JOBS];
pub const BTOUCH: &[Arg] = &[
    KEY,
    Arg::double(c"timeout").shown(c"seconds"),
    COUNTED_DELIVERIES,
    TTR,
];
pub const NACK: &[Arg] = &[
    KEY,
    DELIVERIES,
    DELAY.optional(),
    PRIORITY,
    Arg::one_of(
        c"outcome",
        &[
            Arg::block(
                c"unspoken",
                &[
                    Arg::word(c"silent", c"SILENT"),
                    Arg::string(c"name").after(c"AWAIT").optional(),
                ],
            ),
            Arg::word(c"fail", c"FAIL"),
            Arg::word(c"fatal", c"FATAL"),
        ],
    )
    .optional(),
    Arg::string(c"reason")
        .shown(c"text")
        .after(c"REASON")
        .optional(),
    AFTER,
    ONDEAD,
];
pub const TOUCH: &[Arg] = &[
    KEY,
    DELIVERIES,
    TTR,
    Arg::string(c"progress")
        .shown(c"text")
        .after(c"PROGRESS")
        .optional(),
    said(Attr::Cost),
];
pub const STEP: &[Arg] = &[
    KEY,
    ID,
    Arg::string(c"token"),
    Arg::block(c"step", &[Arg::string(c"name"), Arg::string(c"value")]).multiple(),
];
pub const SIGNAL: &[Arg] = &[
    KEY,
    ID,
    Arg::string(c"name"),
    Arg::string(c"value").optional(),
];
pub const NEXT: &[Arg] = &[KEY, ID, COUNT.optional()];
pub const PEEK: &[Arg] = &[
    KEY,
    STATE.in_place(),
    instant(c"from", c"FROM").optional(),
    instant(c"to", c"TO").optional(),
    COUNT.optional(),
    PREFIX,
];
pub const GET: &[Arg] = &[KEY, ID, PREFIX];
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
    GROUP,
    Arg::pattern(c"payload-pattern")
        .after(c"PAYLOAD")
        .optional(),
    Arg::pattern(c"label-pattern").after(c"LABEL").optional(),
    Arg::word(c"recurring", c"RECURRING").optional(),
    Arg::pattern(c"awaits-pattern").after(c"AWAITS").optional(),
    Arg::pattern(c"reason-pattern").after(c"REASON").optional(),
    COUNT.optional(),
];
pub const GROUP: Arg = Arg::string(c"group").after(c"GROUP").optional();
pub const GROUPS: &[Arg] = &[
    KEY,
    Arg::integer(c"cursor"),
    Arg::pattern(c"pattern").after(c"MATCH").optional(),
    COUNT.optional(),
    Arg::word(c"set", c"SET").optional(),
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
            STATES[4],
            STATES[5],
            Arg::string(c"group").after(c"GROUP"),
        ],
    )
    .optional(),
];
/// At most so many deliveries in a window of time.
const WINDOW: &[Arg] = &[
    Arg::integer(c"deliveries").shown(c"count"),
    Arg::integer(c"window").shown(c"ms"),
];
pub const GROUPSET: &[Arg] = &[
    KEY,
    Arg::string(c"group"),
    number(c"weight", c"WEIGHT", c"deliveries"),
    number(c"max", c"MAX", c"count"),
    Arg::block(c"rate", WINDOW).after(c"RATE").optional(),
    number(c"maxlen", c"MAXLEN", c"count"),
    Arg::word(c"clear", c"CLEAR").optional(),
];
pub const CFGSET: &[Arg] = &[
    KEY,
    TTR,
    said(Attr::Attempts),
    Arg::one_of(
        c"backoff",
        &[
            Arg::block(c"ladder", LADDER),
            Arg::word(c"default", c"DEFAULT"),
        ],
    )
    .after(c"BACKOFF")
    .optional(),
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
    number(c"donelen", c"DONELEN", c"count"),
    number(c"donettl", c"DONETTL", c"ms"),
    number(c"donebytes", c"DONEBYTES", c"bytes"),
    number(c"history", c"HISTORY", c"count"),
];
