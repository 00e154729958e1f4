//! DQ.APPLY: trusted from a master or a file, whatever it says; no client may send it. And the log of what was refused.

use std::fs::OpenOptions;
use std::io::Write;
use std::time::Instant;

use dq::queue::codec::EFFECTS_VERSION;
use dq::queue::effect::{
    Arrival, Came, Change, Completion, DeathCause, Effect, How, OfDone, Purge, RemovalCause,
    FOREVER,
};
use dq::queue::history::{Attempt, Failing};
use dq::queue::job::{Failure, State, SEQ_MAX, TOKEN_MAX};
use dq::queue::note::Note;
use dq::queue::recurring::rule::{Next, Pattern, Rule};
use dq::queue::settings::{DoneLimits, GroupSettings, Rate, Settings};

use crate::payloads::{encoded, forged, is_well, restore, TERMS};
use crate::probe::show;
use crate::scene::{pair, Dice, Lines, Scene};
use crate::support::place::last_aof;
use crate::support::{raw, Server};

fn added(id: &[u8]) -> Effect<'_> {
    Effect::Came(Came {
        id,
        payload: b"x",
        terms: TERMS,
        group: None,
        how: How::New { due: 1, expires: 0 },
    })
}

#[test]
fn clients_cannot_apply() {
    const REFUSED: &str = "-ERR DQ.APPLY is only for replication and the AOF";
    let (master, replica) = pair(Server::builder().aof());
    let bytes = encoded(&[added(b"a")]);
    let apply: [&[u8]; 3] = [b"DQ.APPLY", b"q", &bytes];
    let script = b"return redis.pcall('DQ.APPLY', KEYS[1], ARGV[1])";
    let eval: [&[u8]; 5] = [b"EVAL", script, b"1", b"q", &bytes];
    replica.raw().says("CONFIG SET replica-read-only no", "+OK");
    for server in [&master, &replica] {
        let mut client = server.raw();
        assert_eq!(show(&client.call(&apply)), REFUSED);
        assert!(show(&client.call(&eval)).starts_with("-ERR DQ.APPLY is only"));
        client.says("MULTI", "+OK");
        client.call(&apply);
        client.says("EXEC", &format!("[ {REFUSED} ]"));
        client.says("EXISTS q", "0");
    }
    assert_eq!(master.count_in_aof("DQ.APPLY"), 0);
    // Effects from those who may send them are applied.
    master.raw().says("DQ.ADD q b x", "'b'");
    master.assert_followed_by(&[&replica]);
    replica.raw().says("DQ.LEN q", "1");
    let mut master = master;
    master.kill();
    master.restart();
    master.raw().says("DQ.LEN q", "1");
}

fn arrival(id: &[u8]) -> Arrival<'_> {
    Arrival {
        id: id.into(),
        payload: b"x",
    }
}

fn every(ms: u64) -> Rule<'static> {
    Rule {
        pattern: Pattern::Every { ms },
        until: 0,
        times: 0,
        grace_ms: 0,
        jitter_ms: 0,
        ttl_ms: 0,
    }
}

/// A random effect of any kind, with numbers near their bounds.
fn some_effect<'a>(id: &'a [u8], round: u64, dice: &mut Dice) -> Effect<'a> {
    let ends = [0, 1, 5, round, 1 << 41, (1 << 42) - 1, 1 << 42, FOREVER];
    let further = [SEQ_MAX, TOKEN_MAX, TOKEN_MAX + 1];
    let mut number = || match dice.below(10) {
        0 => further[dice.below(3) as usize],
        _ => ends[dice.below(8) as usize],
    };
    let (due, at, token) = (number(), number(), number());
    match dice.below(23) {
        21 => Effect::CameTogether {
            group: (at > 5).then_some(b"g"),
            due,
            expires: at,
            terms: TERMS,
            jobs: vec![arrival(id), arrival(b"other"), arrival(id)],
        },
        0..=2 => Effect::Came(Came {
            id,
            payload: b"x",
            terms: TERMS,
            group: (token > 5).then_some(b"g"),
            how: match dice.below(6) {
                0 => How::Behind { due, expires: at },
                1 => How::Renewed { rule: every(at) },
                2 => How::Recurs {
                    rule: every(due),
                    first: Next {
                        occurrence: at,
                        due,
                        expires: token,
                        offset_s: 0,
                    },
                },
                _ => How::New { due, expires: at },
            },
        }),
        3 => Effect::Configured(Settings::default()),
        4 => Effect::Paused { until: at },
        5 => Effect::Purged(Purge::Overdue {
            dead: dice.below(2) == 0,
            cut: at,
        }),
        6 => Effect::Remembered { id, until: at },
        7 => Effect::Purged(Purge::State {
            state: State::ALL.get(dice.below(7) as usize).copied(),
            cut: at,
        }),
        8 => Effect::Configured(Settings {
            done_limits: DoneLimits {
                len: due,
                ttl_ms: at,
                bytes: token,
            },
            max_len: due,
            dedupe_ms: at,
            rate: (at > 5).then_some(Rate {
                count: due as u32,
                window_ms: at,
            }),
            ..Settings::default()
        }),
        9 => Effect::Dropped,
        10 => Effect::Floors {
            seq: due,
            death: at,
            token,
        },
        11..=13 => Effect::Noted {
            id,
            note: some_note(dice),
        },
        20 => Effect::Failed {
            id,
            attempt: Attempt {
                token,
                attempts: due as u32,
                ended: at,
                how: [Failing::Fatal, Failing::Timeout][dice.below(2) as usize],
                reason: [None, Some(&[b'r'; 257][..256]), Some(&[b'r'; 257])]
                    [dice.below(3) as usize],
            },
            kept: [0, 1, 100, 101][dice.below(4) as usize],
        },
        22 => Effect::Group {
            name: [&b"g"[..], b"", &[b'g'; 257]][dice.below(3) as usize],
            own: GroupSettings {
                max_reserved: (due > 3).then_some(due),
                rate: (at > 5).then_some((at > 9).then_some(Rate {
                    count: due as u32,
                    window_ms: at,
                })),
                max_len: (token > 3).then_some(token),
                weight: (due > 1).then_some(due as u32),
                paused_until: at,
            },
        },
        14..=17 => Effect::Done(some_of_done(id, (due, at, token), dice)),
        _ => Effect::Job {
            id,
            change: some_change((due, at, token), dice),
        },
    }
}

fn some_note(dice: &mut Dice) -> Note<'static> {
    const LONG: &[u8] = &[b'n'; 1025];
    let lengths = [0, 1, 2, 256, 257, 1024, 1025];
    let mut text = || &LONG[..lengths[dice.below(7) as usize]];
    let (name, value) = (text(), text());
    // None that is critical: who reads one ends.
    let tags = [
        0x100,
        0x101,
        0x102,
        0x106,
        0x103,
        0x22,
        0x7fff_fff5,
        u32::MAX,
    ];
    match dice.below(6) {
        0 => Note::Progress { text: value },
        1 | 2 => Note::Awaits { name },
        3 => Note::Unknown {
            tag: tags[dice.below(8) as usize],
            value,
        },
        _ => Note::Step { name, value },
    }
}

fn some_of_done<'a>(
    id: &'a [u8],
    (due, at, token): (u64, u64, u64),
    dice: &mut Dice,
) -> OfDone<'a> {
    let end = Completion {
        finished: due,
        until: at,
        result: (dice.below(2) == 0).then_some(b"result"),
    };
    match dice.below(8) {
        0 => OfDone::OccurrenceKept {
            id,
            next: None,
            end,
        },
        1 => OfDone::Gone { id },
        2 => OfDone::Deleted { id },
        3 => OfDone::Trimmed { count: due },
        4 => OfDone::Kicked { id, due },
        5 | 6 => OfDone::Trimmed { count: 0 },
        _ => OfDone::Kept {
            id,
            remember: token,
            end,
        },
    }
}

fn some_change((due, at, token): (u64, u64, u64), dice: &mut Dice) -> Change<'static> {
    match dice.below(9) {
        0 => Change::Reserved {
            token,
            deadline: at,
            lease_ms: due,
        },
        1 => Change::Touched {
            deadline: at,
            lease_ms: due,
        },
        2 => Change::TimedOut,
        3 => Change::Nacked {
            due,
            priority: 1,
            attempts: 3,
            failure: None,
        },
        4 => Change::Died {
            at,
            cause: DeathCause::TimedOut,
        },
        5 => Change::Died {
            at,
            cause: DeathCause::Nacked {
                priority: 7,
                failure: Some(Failure {
                    at,
                    reason: Some(b"why"),
                }),
            },
        },
        6 => Change::Rescheduled { due },
        7 => Change::Kicked { due },
        _ => Change::Removed {
            cause: RemovalCause::Acked,
            remember: at,
        },
    }
}

/// An AOF with arbitrary effects: the server starts and works, and is followed and loaded again.
#[test]
fn forged_effects_in_a_file() {
    const ROUNDS: u64 = 4000;
    let mut server = Server::builder().aof().start();
    let mut dice = Dice::new(0xf0e);
    for part in 0..4 {
        server.kill();
        let file = OpenOptions::new()
            .append(true)
            .open(last_aof(server.folder()));
        let mut file = file.expect("the AOF");
        for round in 0..ROUNDS / 4 {
            let ids: [&[u8]; 5] = [b"a", b"b", b"c", b"", b"\0"];
            let id = ids[dice.below(5) as usize];
            let effect = some_effect(id, part * ROUNDS + round, &mut dice);
            let mut bytes = match dice.below(4) {
                0 => encoded(&[added(b"a"), effect]),
                _ => encoded(&[effect]),
            };
            match dice.below(8) {
                0 => bytes.extend(dice.bytes(9)),
                1 => bytes = dice.bytes(40),
                _ => {}
            }
            // Effects of a future version would end the load: see `newer`.
            if let Some(version) = bytes.first_mut() {
                *version %= EFFECTS_VERSION + 1;
            }
            let command = raw::encode(&[b"DQ.APPLY", b"q", &bytes]);
            file.write_all(&command).expect("room on the disk");
        }
        drop(file);
        server.restart();
        let mut client = server.raw();
        for line in [
            "DQ.ADD q * x",
            "DQ.POP q COUNT 5",
            "DQ.NACK q a FATAL",
            "DQ.KICK q COUNT 5",
        ] {
            let reply = client.ask(line);
            let sound = !reply.starts_with('-') || reply.starts_with("-MAXLEN ");
            assert!(sound, "{line} -> {reply}");
        }
        let replica = Server::start();
        replica.replica_of(&server);
        is_well(&server, &replica);
    }
}

/// A client may be refused a million times, under any name: the log stays small and harmless.
#[test]
fn the_log_is_not_for_clients_to_fill() {
    let server = Server::start();
    let mut client = server.raw();
    let far = Effect::Floors {
        seq: SEQ_MAX + 1,
        death: 0,
        token: 0,
    };
    let payload = forged(&mut client, &[far]);
    let name = b"q\n1:M 1 Jan 2000 00:00:00.000 # forged \x1b[2J";
    let start = Instant::now();
    for _ in 0..500 {
        let reply = show(&restore(&mut client, name, &payload));
        assert!(reply.starts_with("-ERR "), "{reply}");
    }
    let log = server.log();
    let lines = log
        .lines()
        .filter(|line| line.contains("data of the queue"));
    let lines: Vec<&str> = lines.collect();
    assert!(!lines.is_empty() && lines.len() as u64 <= 2 + start.elapsed().as_secs());
    assert!(lines[0].contains("q\\n1:M") && lines[0].contains("\\x1b[2J"));
    assert!(!log.lines().any(|line| line.starts_with("1:M 1 Jan 2000")));
}
