//! The table of all commands: name, entry, flags, arity, keys, ACL categories, and the text of COMMAND DOCS,
//! which redis-cli completes and hints from. All that the server knows of a command stands here.
//!
//! docs/commands.md is the long form.

use super::{
    ack, add, apply, bpop, configure, del, forecast, get, kick, len, nack, next, peek, pop, purge,
    reschedule, scan, stats, test_clock, touch,
};
use crate::server::api::command_info::{About, Access, Arg};
use crate::server::api::entry;

const KEY: Arg = Arg::key(c"key");
const ID: Arg = Arg::string(c"id");
const IDS: Arg = ID.multiple();
const TTR: Arg = Arg::integer(c"ttr").shown(c"ms").after(c"TTR").optional();
const COUNT: Arg = Arg::integer(c"count").after(c"COUNT");
const NOACK: Arg = Arg::word(c"noack", c"NOACK").optional();
const WITHDUE: Arg = Arg::word(c"withdue", c"WITHDUE").optional();
/// Which delivery of one job, or which deliveries of several.
const DELIVERIES: Arg = Arg::one_of(
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
        .after(c"IDS"),
    ],
);
const PRIORITY: Arg = Arg::integer(c"priority").after(c"PRIORITY").optional();
const ATTEMPTS: Arg = Arg::integer(c"attempts")
    .shown(c"count")
    .after(c"ATTEMPTS")
    .optional();
const DELAY: Arg = Arg::integer(c"delay").shown(c"ms").after(c"DELAY");
const AT: Arg = Arg::unix_time(c"at")
    .shown(c"unix-time-milliseconds")
    .after(c"AT");
const BACKOFF: Arg = Arg::block(
    c"backoff",
    &[
        Arg::integer(c"steps").shown(c"count"),
        Arg::integer(c"step").shown(c"ms").optional().multiple(),
    ],
)
.after(c"BACKOFF")
.optional();
const STATES: [Arg; 4] = [
    Arg::word(c"delayed", c"DELAYED"),
    Arg::word(c"ready", c"READY"),
    Arg::word(c"reserved", c"RESERVED"),
    Arg::word(c"dead", c"DEAD"),
];
const STATE: Arg = Arg::one_of(c"state", &STATES);

const RULE: Arg = Arg::block(
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
        Arg::unix_time(c"until")
            .shown(c"unix-time-milliseconds")
            .after(c"UNTIL")
            .optional(),
        Arg::integer(c"times")
            .shown(c"count")
            .after(c"TIMES")
            .optional(),
        Arg::integer(c"grace")
            .shown(c"ms")
            .after(c"GRACE")
            .optional(),
        Arg::integer(c"jitter")
            .shown(c"ms")
            .after(c"JITTER")
            .optional(),
    ],
)
.optional();

const TIME_MATTERS: &std::ffi::CStr = c"nondeterministic_output";

static COMMANDS: [About; 22] = [
    About {
        name: c"dq.add",
        run: entry!(add::run),
        flags: c"write deny-oom fast",
        summary: c"Adds a job to a queue. Creates the queue if it is not there.",
        complexity: c"O(log N) with N jobs in the queue",
        tips: TIME_MATTERS,
        arity: -4,
        key: Some(Access::Update),
        categories: c"write fast",
        args: &[
            KEY,
            Arg::one_of(c"id-selector", &[Arg::word(c"auto-id", c"*"), ID]),
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
            Arg::integer(c"ttl").shown(c"ms").after(c"TTL").optional(),
            RULE,
        ],
    },
    About {
        name: c"dq.pop",
        run: entry!(pop::run),
        flags: c"write fast",
        summary: c"Reserves ready jobs of a queue, or removes them at delivery.",
        complexity: c"O(M log N) with N jobs in the queue, M of them delivered",
        tips: TIME_MATTERS,
        arity: -2,
        key: Some(Access::ReadUpdate),
        categories: c"write fast",
        args: &[
            KEY,
            Arg::one_of(c"which", &[COUNT, ID.after(c"ID")]).optional(),
            TTR,
            NOACK,
            WITHDUE,
        ],
    },
    About {
        name: c"dq.bpop",
        run: entry!(bpop::run),
        flags: c"write blocking",
        summary: c"Reserves ready jobs of the first of several queues that has any. Blocks until one has otherwise.",
        complexity: c"O(K + M log N) with K keys and N jobs in the queue, M of them delivered",
        tips: TIME_MATTERS,
        arity: -3,
        key: Some(Access::ReadUpdate),
        categories: c"write slow blocking",
        args: &[
            KEY.multiple(),
            Arg::double(c"timeout").shown(c"seconds"),
            COUNT.optional(),
            TTR,
            NOACK,
            WITHDUE,
        ],
    },
    About {
        name: c"dq.ack",
        run: entry!(ack::run),
        flags: c"write fast",
        summary: c"Removes delivered jobs that are finished.",
        complexity: c"O(M log N) with N jobs in the queue and M ids",
        tips: c"",
        arity: -3,
        key: Some(Access::Delete),
        categories: c"write fast",
        args: &[
            KEY,
            Arg::one_of(
                c"jobs",
                &[
                    IDS,
                    Arg::block(c"delivery", &[ID, Arg::string(c"token")])
                        .after(c"WITHTOKENS")
                        .multiple(),
                ],
            ),
        ],
    },
    About {
        name: c"dq.del",
        run: entry!(del::run),
        flags: c"write fast",
        summary: c"Removes jobs in any state.",
        complexity: c"O(M log N) with N jobs in the queue and M ids",
        tips: c"",
        arity: -3,
        key: Some(Access::Delete),
        categories: c"write fast",
        args: &[
            KEY,
            Arg::word(c"unreserved", c"UNRESERVED").optional(),
            IDS,
        ],
    },
    About {
        name: c"dq.nack",
        run: entry!(nack::run),
        flags: c"write fast",
        summary: c"Gives delivered jobs back, to be delivered again or to be dead.",
        complexity: c"O(M log N) with N jobs in the queue and M ids",
        tips: TIME_MATTERS,
        arity: -3,
        key: Some(Access::Update),
        categories: c"write fast",
        args: &[
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
            Arg::string(c"reason").shown(c"text").after(c"REASON").optional(),
        ],
    },
    About {
        name: c"dq.touch",
        run: entry!(touch::run),
        flags: c"write fast",
        summary: c"Begins the leases of reserved jobs anew.",
        complexity: c"O(M log N) with N jobs in the queue and M ids",
        tips: TIME_MATTERS,
        arity: -3,
        key: Some(Access::Update),
        categories: c"write fast",
        args: &[KEY, DELIVERIES, TTR],
    },
    About {
        name: c"dq.reschedule",
        run: entry!(reschedule::run),
        flags: c"write fast",
        summary: c"Gives delayed and ready jobs another due, another priority, or both.",
        complexity: c"O(M log N) with N jobs in the queue and M ids",
        tips: c"",
        arity: -5,
        key: Some(Access::Update),
        categories: c"write fast",
        args: &[
            KEY,
            Arg::one_of(c"due", &[DELAY, AT]).optional(),
            PRIORITY,
            IDS,
        ],
    },
    About {
        name: c"dq.kick",
        run: entry!(kick::run),
        flags: c"write",
        summary: c"Makes dead jobs ready again.",
        complexity: c"O(M log N) with N jobs in the queue, M of them made ready or named",
        tips: c"",
        arity: -4,
        key: Some(Access::Update),
        categories: c"write slow",
        args: &[
            KEY,
            Arg::one_of(
                c"which",
                &[
                    COUNT,
                    Arg::block(c"ids", &[Arg::integer(c"numids"), IDS]).after(c"IDS"),
                ],
            ),
        ],
    },
    About {
        name: c"dq.purge",
        run: entry!(purge::run),
        flags: c"write",
        summary: c"Removes all jobs of one state, or of all.",
        complexity: c"O(1) with ALL, O(log N) with RESERVED and DEAD of N jobs; with DELAYED and READY O(P log N), where N jobs have P different priorities",
        tips: c"",
        arity: 3,
        key: Some(Access::Delete),
        categories: c"write slow",
        args: &[
            KEY,
            Arg::one_of(
                c"state",
                &[
                    STATES[0],
                    STATES[1],
                    STATES[2],
                    STATES[3],
                    Arg::word(c"all", c"ALL"),
                ],
            ),
        ],
    },
    About {
        name: c"dq.get",
        run: entry!(get::run),
        flags: c"readonly fast",
        summary: c"Shows a job with all its fields.",
        complexity: c"O(1)",
        tips: TIME_MATTERS,
        arity: 3,
        key: Some(Access::Read),
        categories: c"read fast",
        args: &[KEY, ID],
    },
    About {
        name: c"dq.next",
        run: entry!(next::run),
        flags: c"readonly fast",
        summary: c"Tells the next instants at which a recurring job will be due.",
        complexity: c"O(N) with N instants",
        tips: TIME_MATTERS,
        arity: -3,
        key: Some(Access::Read),
        categories: c"read fast",
        args: &[KEY, ID, COUNT.optional()],
    },
    About {
        name: c"dq.peek",
        run: entry!(peek::run),
        flags: c"readonly",
        summary: c"Shows the first jobs of a state, in its own order.",
        complexity: c"O(log N + M) with N jobs in the queue, M of them shown; with FROM also those ready jobs of other priorities than 0 that are passed over",
        tips: TIME_MATTERS,
        arity: -3,
        key: Some(Access::Read),
        categories: c"read slow",
        args: &[
            KEY,
            STATE,
            Arg::unix_time(c"from").shown(c"unix-time-milliseconds").after(c"FROM").optional(),
            Arg::unix_time(c"to").shown(c"unix-time-milliseconds").after(c"TO").optional(),
            COUNT.optional(),
        ],
    },
    About {
        name: c"dq.forecast",
        run: entry!(forecast::run),
        flags: c"readonly",
        summary: c"Counts delayed and ready jobs of a queue by equal parts of a time to come.",
        complexity: c"O(M log N) with N jobs in the queue and M parts",
        tips: TIME_MATTERS,
        arity: -8,
        key: Some(Access::Read),
        categories: c"read slow",
        args: &[
            KEY,
            Arg::unix_time(c"from").shown(c"unix-time-milliseconds").after(c"FROM"),
            Arg::unix_time(c"to").shown(c"unix-time-milliseconds").after(c"TO"),
            Arg::integer(c"buckets").shown(c"count").after(c"BUCKETS"),
        ],
    },
    About {
        name: c"dq.scan",
        run: entry!(scan::run),
        flags: c"readonly",
        summary: c"Iterates over the ids of a queue's jobs.",
        complexity: c"O(1) for every call. O(N) for a complete iteration, with N jobs in the queue",
        tips: TIME_MATTERS,
        arity: -3,
        key: Some(Access::Read),
        categories: c"read slow",
        args: &[
            KEY,
            Arg::integer(c"cursor"),
            STATE.after(c"STATE").optional(),
            Arg::pattern(c"pattern").after(c"MATCH").optional(),
            COUNT.optional(),
        ],
    },
    About {
        name: c"dq.len",
        run: entry!(len::run),
        flags: c"readonly fast",
        summary: c"Counts the jobs of one state, or those that are not dead.",
        complexity: c"O(log N) with N jobs in the queue",
        tips: TIME_MATTERS,
        arity: -2,
        key: Some(Access::Measure),
        categories: c"read fast",
        args: &[KEY, STATE.optional()],
    },
    About {
        name: c"dq.stats",
        run: entry!(stats::run),
        flags: c"readonly fast",
        summary: c"Shows how many jobs a queue holds and what happened to them so far.",
        complexity: c"O(log N) with N jobs in the queue",
        tips: TIME_MATTERS,
        arity: 2,
        key: Some(Access::Read),
        categories: c"read fast",
        args: &[KEY],
    },
    About {
        name: c"dq.cfgset",
        run: entry!(configure::set),
        flags: c"write fast",
        summary: c"Changes settings of a queue. Creates the queue if it is not there.",
        complexity: c"O(1), or O(log N) where a new DEADLEN removes some of N jobs",
        tips: c"",
        arity: -2,
        key: Some(Access::Update),
        categories: c"write fast",
        args: &[
            KEY,
            TTR,
            ATTEMPTS,
            BACKOFF,
            Arg::integer(c"maxlen").shown(c"count").after(c"MAXLEN").optional(),
            Arg::integer(c"maxbytes").shown(c"bytes").after(c"MAXBYTES").optional(),
            Arg::integer(c"deadlen").shown(c"count").after(c"DEADLEN").optional(),
            Arg::integer(c"dedupe").shown(c"ms").after(c"DEDUPE").optional(),
            Arg::integer(c"maxreserved").shown(c"count").after(c"MAXRESERVED").optional(),
            Arg::block(
                c"rate",
                &[
                    Arg::integer(c"deliveries").shown(c"count"),
                    Arg::integer(c"window").shown(c"ms"),
                ],
            )
            .after(c"RATE")
            .optional(),
        ],
    },
    About {
        name: c"dq.cfgget",
        run: entry!(configure::get),
        flags: c"readonly fast",
        summary: c"Shows the settings of a queue.",
        complexity: c"O(1)",
        tips: TIME_MATTERS,
        arity: 2,
        key: Some(Access::Read),
        categories: c"read fast",
        args: &[KEY],
    },
    About {
        name: c"dq.pause",
        run: entry!(configure::pause),
        flags: c"write fast",
        summary: c"Stops deliveries from a queue. Creates the queue if it is not there.",
        complexity: c"O(1)",
        tips: c"",
        arity: -2,
        key: Some(Access::Update),
        categories: c"write fast",
        args: &[KEY, Arg::integer(c"ms").optional()],
    },
    About {
        name: c"dq.resume",
        run: entry!(configure::resume),
        flags: c"write fast",
        summary: c"Ends the pause of a queue.",
        complexity: c"O(1)",
        tips: c"",
        arity: 2,
        key: Some(Access::Update),
        categories: c"write fast",
        args: &[KEY],
    },
    About {
        name: c"dq.apply",
        run: entry!(apply::run),
        flags: c"write admin",
        summary: c"An internal command for replication and the AOF. Not for users.",
        complexity: c"O(M log N) with N jobs in the queue and M effects",
        tips: c"",
        arity: 3,
        key: Some(Access::Update),
        categories: c"write slow admin dangerous",
        args: &[KEY, Arg::string(c"effects")],
    },
];

/// All that the module serves.
pub fn commands(with_test_clock: bool) -> impl Iterator<Item = &'static About> {
    #[cfg(feature = "breakable")]
    let for_tests = Some(&BREAK);
    #[cfg(not(feature = "breakable"))]
    let for_tests = None;
    let clock = with_test_clock.then_some(&TEST_CLOCK);
    COMMANDS.iter().chain(clock).chain(for_tests)
}

#[cfg(feature = "breakable")]
static BREAK: About = About {
    name: c"dq.break",
    run: entry!(super::breakable::run),
    flags: c"write",
    summary: c"Breaks an invariant.",
    complexity: c"O(1)",
    tips: c"",
    arity: 3,
    key: Some(Access::Update),
    categories: c"write slow",
    args: &[KEY, ID],
};

/// With `test-clock yes` only.
static TEST_CLOCK: About = About {
    name: c"dq.clock",
    run: entry!(test_clock::run),
    flags: c"admin deny-script",
    summary: c"Shows or moves the clock for tests.",
    complexity: c"O(M log N) with N jobs, M of which something happens to on the way",
    tips: TIME_MATTERS,
    arity: -2,
    key: None,
    categories: c"slow admin dangerous",
    args: &[Arg::one_of(
        c"movement",
        &[
            Arg::word(c"get", c"GET"),
            Arg::unix_time(c"set")
                .shown(c"unix-time-milliseconds")
                .after(c"SET"),
            Arg::integer(c"advance").shown(c"ms").after(c"ADVANCE"),
            Arg::word(c"next", c"NEXT"),
        ],
    )],
};
