//! Nothing that a client sends kills the server, reaches what it may not, or makes a replica differ.

use dq::queue::effect::{encode, Change, Death, Effect, Removal, EFFECTS_VERSION, FOREVER};
use dq::queue::job::{Life, Place, State, Terms};
use dq::queue::settings::{Rate, Settings};

use crate::probe::show;
use crate::scene::{pair, Dice, Lines, Scene, WORDS};
use crate::support::{raw, skipped, wait_until, Raw, Reply, Server, PATIENCE};

/// The checksum that ends a DUMP payload: Jones' CRC-64, as the server reckons it.
fn crc64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |crc, &byte| {
        (0..8).fold(crc ^ u64::from(byte), |crc, _| {
            (crc >> 1) ^ (0x95ac_9329_ac4b_c9b5 * (crc & 1))
        })
    })
}

#[test]
fn the_checksum_is_the_servers() {
    assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    let server = Server::start();
    let dump = dump(&mut server.raw());
    assert_eq!(repaired(dump.clone()), dump);
}

/// The payload with a checksum that fits its bytes.
pub fn repaired(mut payload: Vec<u8>) -> Vec<u8> {
    let end = payload.len() - 8;
    let crc = crc64(&payload[..end]);
    payload[end..].copy_from_slice(&crc.to_le_bytes());
    payload
}

/// A dump of a queue that has something of everything.
pub fn dump(client: &mut Raw) -> Vec<u8> {
    for line in [
        "DEL full",
        "DQ.CFGSET full TTR 5000 ATTEMPTS 3 BACKOFF 2 10 20 MAXLEN 100 DEADLEN 9 DEDUPE 60000 MAXRESERVED 50 RATE 1000 1000",
        "DQ.ADD full delayed payload DELAY 60000 PRIORITY -3 TTL 90000",
        "DQ.ADD full ready \\x00\\xff",
        "DQ.ADD full leased x PRIORITY -9",
        "DQ.ADD full acked x PRIORITY -8",
        "DQ.ADD full dead x PRIORITY -7",
        "DQ.POP full COUNT 3",
        "DQ.ACK full acked",
        "DQ.NACK full dead FATAL",
        "DQ.PAUSE full 60000",
    ] {
        let reply = client.ask(line);
        assert!(!reply.starts_with('-'), "{line} -> {reply}");
    }
    let Reply::Bulk(payload) = client.run("DUMP full") else {
        panic!("no dump");
    };
    client.says("DEL full", "1");
    payload
}

/// A DUMP payload of these effects: what the type's rdb_load reads, forged.
pub fn forged(client: &mut Raw, effects: &[Effect<'_>]) -> Vec<u8> {
    let real = dump(client);
    wrapped(&real, &encoded(effects))
}

/// A DUMP payload around these bytes, with head and foot of a real one.
pub fn wrapped(real: &[u8], chunk: &[u8]) -> Vec<u8> {
    // Type 7 (a module's), then the module's 64-bit number: 0x81 and eight bytes.
    let mut payload = real[..10].to_vec();
    let string = |payload: &mut Vec<u8>, bytes: &[u8]| {
        payload.extend([5, 0x80]); // a string follows; its length in 32 bits
        payload.extend((bytes.len() as u32).to_be_bytes());
        payload.extend(bytes);
    };
    string(&mut payload, chunk);
    string(&mut payload, b"");
    payload.push(0); // the module's end
    payload.extend(&real[real.len() - 10..]);
    repaired(payload)
}

pub fn encoded(effects: &[Effect<'_>]) -> Vec<u8> {
    let mut bytes = vec![EFFECTS_VERSION];
    effects.iter().for_each(|effect| encode(effect, &mut bytes));
    bytes
}

fn terms() -> Terms<'static> {
    Terms {
        priority: 0,
        ttr_ms: 1000,
        max_attempts: 0,
        backoff_ms: Vec::new().into(),
    }
}

pub fn stored(id: &[u8], seq: u64, due: u64, place: Place, life: Life) -> Effect<'_> {
    let payload = b"x";
    Effect::Stored {
        id,
        payload,
        seq,
        due,
        place,
        life,
        terms: terms(),
    }
}

pub fn restore(client: &mut Raw, key: &[u8], payload: &[u8]) -> Reply {
    client.call(&[b"RESTORE", key, b"0", payload, b"REPLACE"])
}

/// The server goes on, in all that it does: memory, file, replica.
#[track_caller]
pub fn is_well(server: &Server, replica: &Server) {
    let mut client = server.raw();
    client.says("DEL well", "0");
    client.says("DQ.ADD well a x", "'a'");
    client.begin("DQ.BPOP well 0");
    let got = client.delivery();
    client.says(&format!("DQ.ACK well WITHTOKENS a {}", got.token), "1");
    server.assert_no_crash();
    server.assert_followed_by(&[replica]);
    client.says("CLIENT PAUSE 60000 WRITE", "+OK");
    let digest = client.ask("DEBUG DIGEST");
    client.says("DEBUG RELOAD", "+OK");
    assert_eq!(client.ask("DEBUG DIGEST"), digest, "after DEBUG RELOAD");
    client.says("CLIENT UNPAUSE", "+OK");
    assert!(!replica.log().contains("refused"), "{}", replica.log());
}

#[test]
fn hostile_arguments() {
    const ROUNDS: usize = 20_000;
    let (server, replica) = pair(Server::builder().config("proto-max-bulk-len", "512mb"));
    let mut client = server.raw();
    let mut dice = Dice::new(0x5afe);
    let names: &[&str] = &[
        "DQ.ADD",
        "DQ.POP",
        "DQ.BPOP",
        "DQ.ACK",
        "DQ.DEL",
        "DQ.NACK",
        "DQ.TOUCH",
        "DQ.RESCHEDULE",
        "DQ.KICK",
        "DQ.PURGE",
        "DQ.GET",
        "DQ.PEEK",
        "DQ.SCAN",
        "DQ.LEN",
        "DQ.STATS",
        "DQ.CFGSET",
        "DQ.CFGGET",
        "DQ.PAUSE",
        "DQ.RESUME",
        "DQ.APPLY",
    ];
    let mut words = vec![
        "q",
        "r",
        "s",
        "a",
        "b",
        "*",
        "",
        "0",
        "1",
        "-1",
        "2",
        "1000",
        "4398046511103",
        "4398046511104",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "0.001",
        "-0.5",
        "1e400",
        "nan",
        "inf",
        "-inf",
        "0x10",
        " 1",
        "1 ",
        "+1",
        "00",
        "WITHTOKENS",
        "DELAYED",
        "RESERVED",
        "ALL",
        "FROM",
        "TO",
        "STATE",
        "MATCH",
        "DEADLEN",
        "DEDUPE",
        "MAXRESERVED",
        "RATE",
        "2147483648",
        "-2147483649",
        "*?[",
        "[^",
        "\\",
        "**********************a",
    ];
    words.extend(WORDS);
    client.says("SET s string", "+OK");
    for round in 0..ROUNDS {
        let name = dice.pick(names);
        let count = dice.below(9);
        let mut arguments: Vec<Vec<u8>> = vec![name.as_bytes().to_vec()];
        for at in 0..count {
            arguments.push(match dice.below(12) {
                0 => dice.bytes(20),
                1 => b"\0\xff\r\n".to_vec(),
                2 => vec![b'x'; 1 + 1024 * (dice.below(3) as usize)],
                _ if at == 0 => b"q".to_vec(),
                _ => dice.pick(&words).as_bytes().to_vec(),
            });
        }
        if *name == *"DQ.BPOP" {
            // Else it waits for ever.
            arguments.push(
                dice.pick(&["0.0001", "1e-9", "-1", "x", "1e-320"])
                    .as_bytes()
                    .to_vec(),
            );
        }
        let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
        let reply = client.call(&arguments);
        if let Reply::Error(text) = &reply {
            assert!(!text.contains("internal error"), "{arguments:?} -> {text}");
            let known = ["ERR ", "WRONGTYPE ", "MAXLEN "]
                .iter()
                .any(|code| text.starts_with(code));
            assert!(known, "{arguments:?} -> {text}");
        }
        if round % 5000 == 4999 {
            is_well(&server, &replica);
        }
    }
}

#[test]
fn huge_arguments() {
    let (server, replica) = pair(Server::builder());
    let mut client = server.raw();
    let big = vec![0xfe; 64 << 20];
    assert_eq!(
        client.call(&[b"DQ.ADD", b"q", b"big", &big]),
        Reply::bulk("big")
    );
    assert!(show(&client.call(&[b"DQ.ADD", b"q", &big, b"x"])).starts_with("-ERR "));
    for command in ["DQ.GET", "DQ.TOUCH", "DQ.NACK"] {
        let reply = client.call(&[command.as_bytes(), b"q", &big]);
        assert_eq!(reply, Reply::NullBulk, "{command}");
    }
    assert_eq!(client.call(&[b"DQ.ACK", b"q", &big]), Reply::Integer(0));
    assert_eq!(client.call(&[b"DQ.DEL", b"q", &big]), Reply::Integer(0));
    assert_eq!(
        client.call(&[b"DQ.ADD", &big, b"a", b"x"]),
        Reply::bulk("a")
    );
    client.begin("DQ.BPOP q 0");
    let Reply::Array(items) = client.read() else {
        panic!("no delivery");
    };
    assert!(items[2] == Reply::Bulk(big));
    // Arguments by the thousand.
    let mut bytes: Vec<&[u8]> = vec![b"DQ.DEL", b"q"];
    bytes.resize(100_000, b"none");
    assert_eq!(client.call(&bytes), Reply::Integer(0));
    let mut keys: Vec<&[u8]> = vec![b"DQ.BPOP"];
    keys.resize(20_000, b"nobody");
    keys.push(b"0.001");
    assert_eq!(client.call(&keys), Reply::NullArray);
    client.says("DQ.POP q COUNT 9223372036854775807", "[ ]");
    client.says("DQ.PEEK q READY COUNT 9223372036854775807", "[ ]");
    client.says("DQ.KICK q COUNT 9223372036854775807", "0");
    is_well(&server, &replica);
}

/// Guards against the host's panic over what a type cannot load, and against believing lengths.
#[test]
fn damaged_payloads() {
    let (server, replica) = pair(Server::builder().config("sanitize-dump-payload", "no"));
    let mut client = server.raw();
    let real = dump(&mut client);
    let mut dice = Dice::new(0xdead);
    let (mut taken, mut refused) = (0, 0);
    let mut check =
        |payload: Vec<u8>, client: &mut Raw| match restore(client, b"q", &repaired(payload)) {
            Reply::Simple(_) => taken += 1,
            Reply::Error(text) => {
                assert!(text.starts_with("ERR "), "{text}");
                refused += 1;
            }
            other => panic!("{}", show(&other)),
        };
    for at in 0..(real.len() - 10) * 8 {
        let mut payload = real.clone();
        payload[at / 8] ^= 1 << (at % 8);
        check(payload, &mut client);
        if at % 50 == 0 {
            client.run("DQ.POP q COUNT 3");
            client.run("DQ.ADD q a x REPLACE");
        }
    }
    for length in 10..real.len() - 10 {
        let mut payload = real[..length].to_vec();
        payload.extend(&real[real.len() - 10..]);
        check(payload, &mut client);
    }
    for _ in 0..3000 {
        let mut payload = real.clone();
        for _ in 0..1 + dice.below(8) {
            let at = 10 + dice.below(real.len() as u64 - 20) as usize;
            match dice.below(3) {
                0 => payload[at] = dice.next() as u8,
                1 => payload[at] = *dice.pick(&[&0xffu8, &0x7f, &0x80, &0]),
                _ => {
                    let byte = dice.next() as u8;
                    payload.insert(at, byte);
                }
            }
        }
        check(payload, &mut client);
    }
    println!("{taken} taken, {refused} refused");
    assert!(refused > 1000 && taken > 0);
    is_well(&server, &replica);
    // Without the checksum nothing is even looked at.
    let mut payload = real.clone();
    payload[20] ^= 1;
    assert!(show(&restore(&mut client, b"q", &payload))
        .starts_with("-ERR DUMP payload version or checksum"));
}

/// The largest numbers that are taken from outside must leave room to count on from them: else the
/// master goes on to what its replica, and its own file, refuse.
#[test]
fn forged_numbers_do_not_poison_what_follows() {
    const TOKENS: [u64; 6] = [
        1 << 61,
        (1 << 62) - 1,
        1 << 62,
        (1 << 62) + 1,
        1 << 63,
        u64::MAX,
    ];
    const SEQS: [u64; 6] = [
        1 << 45,
        (1 << 46) + 1,
        1 << 47,
        (1 << 47) + 1,
        (1 << 48) - 1,
        u64::MAX,
    ];
    let instants = [0, 1, (1 << 42) - 1, 1 << 42, u64::MAX];
    let mut forgeries: Vec<Vec<Effect<'_>>> = Vec::new();
    for token in TOKENS {
        forgeries.push(vec![Effect::Floors {
            seq: 0,
            death: 0,
            token,
        }]);
        let life = Life {
            token,
            at: 1,
            ..Life::default()
        };
        forgeries.push(vec![stored(b"a", 1, 1, Place::Reserved, life)]);
        let life = Life {
            token,
            ..Life::default()
        };
        forgeries.push(vec![stored(b"a", 1, 1, Place::Scheduled, life)]);
        forgeries.push(vec![
            stored(b"a", 1, 1, Place::Scheduled, Life::default()),
            Effect::Job {
                id: b"a",
                change: Change::Reserved {
                    token,
                    deadline: 1,
                    lease_ms: 1,
                },
            },
        ]);
    }
    for seq in SEQS {
        forgeries.push(vec![Effect::Floors {
            seq,
            death: 0,
            token: 0,
        }]);
        forgeries.push(vec![Effect::Floors {
            seq: 0,
            death: seq,
            token: 0,
        }]);
        forgeries.push(vec![stored(
            b"a",
            seq,
            1,
            Place::Scheduled,
            Life::default(),
        )]);
        let life = Life {
            death: seq,
            at: 1,
            ..Life::default()
        };
        forgeries.push(vec![stored(b"a", 1, 1, Place::Dead, life)]);
    }
    for instant in instants {
        for ms in instants {
            forgeries.push(vec![Effect::Minted {
                ms,
                seq: instant,
                token: instant << 20,
            }]);
        }
        let life = Life {
            at: instant,
            token: 5,
            lease_ms: instant,
            expires: instant,
            ..Life::default()
        };
        forgeries.push(vec![stored(b"a", 1, instant, Place::Reserved, life)]);
        forgeries.push(vec![Effect::Paused { until: instant }]);
        forgeries.push(vec![Effect::Remembered {
            id: b"a",
            until: instant,
        }]);
    }
    let life = Life {
        attempts: u32::MAX,
        ..Life::default()
    };
    forgeries.push(vec![stored(b"a", 1, 1, Place::Scheduled, life)]);
    // Two of a number where each must have its own.
    forgeries.push(vec![
        stored(b"a", 1, 1, Place::Scheduled, Life::default()),
        stored(b"b", 1, 1, Place::Scheduled, Life::default()),
        stored(b"c", 1, 1, Place::Scheduled, Life::default()),
    ]);
    let life = Life {
        death: 1,
        at: 1,
        ..Life::default()
    };
    forgeries.push(vec![
        stored(b"a", 1, 1, Place::Dead, life),
        stored(b"b", 2, 1, Place::Dead, life),
    ]);

    let (mut server, replica) = pair(Server::builder().aof());
    let (mut taken, mut refused) = (0, 0);
    for effects in &forgeries {
        let mut client = server.raw();
        let payload = forged(&mut client, effects);
        match restore(&mut client, b"q", &payload) {
            Reply::Simple(_) => taken += 1,
            _ => refused += 1,
        }
        // What such a queue goes on to, and an innocent one beside it.
        for key in ["q", "other"] {
            client.run(&format!("DQ.ADD {key} new x"));
            client.run(&format!("DQ.ADD {key} * x"));
            client.run(&format!("DQ.POP {key} COUNT 10"));
            client.run(&format!("DQ.NACK {key} new FATAL"));
            client.run(&format!("DQ.NACK {key} a"));
            client.run(&format!("DQ.KICK {key} COUNT 1"));
            client.run(&format!("DQ.POP {key}"));
            let reply = client.ask(&format!("DQ.ADD {key} * x"));
            assert!(!reply.starts_with('-'), "{effects:?}: {reply}");
            let Reply::Bulk(payload) = client.run(&format!("DUMP {key}")) else {
                panic!("no dump");
            };
            let again = show(&restore(&mut client, b"again", &payload));
            assert_eq!(again, "+OK", "{key} after {effects:?}");
        }
        client.says("CLIENT PAUSE 60000 WRITE", "+OK");
        replica.wait_for_offset_of(&server);
        assert_eq!(replica.digest(), server.digest(), "{effects:?}");
        assert_eq!(client.ask("DEBUG RELOAD"), "+OK", "{effects:?}");
        client.says("CLIENT UNPAUSE", "+OK");
        client.says("DEL q other again", "3");
    }
    assert!(
        taken > 10 && refused > 10,
        "{taken} taken, {refused} refused"
    );
    is_well(&server, &replica);
    let digest = server.digest();
    server.kill();
    server.restart();
    assert_eq!(server.digest(), digest, "after its AOF was read");
}

#[test]
fn forged_effects_from_a_client() {
    let (server, replica) = pair(Server::builder());
    let mut client = server.raw();
    let mut dice = Dice::new(0xf0e);
    let mut taken = 0;
    let states = [
        None,
        Some(State::Delayed),
        Some(State::Ready),
        Some(State::Reserved),
        Some(State::Dead),
    ];
    for round in 0..4000u64 {
        let ids: [&[u8]; 5] = [b"a", b"b", b"c", b"", b"\0"];
        let id = ids[dice.below(5) as usize];
        let numbers = [0, 1, 5, round, 1 << 41, (1 << 42) - 1, 1 << 42, FOREVER];
        let mut number = || numbers[dice.below(8) as usize];
        let (due, at, token) = (number(), number(), number());
        let change = match round % 9 {
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
            },
            4 => Change::Died {
                at,
                cause: Death::TimedOut,
            },
            5 => Change::Died {
                at,
                cause: Death::Nacked { priority: 7 },
            },
            6 => Change::Rescheduled { due },
            7 => Change::Kicked { due },
            _ => Change::Removed {
                cause: Removal::Acked,
                remember: at,
            },
        };
        let effect = match dice.below(14) {
            0..=2 => Effect::Added {
                id,
                payload: b"x",
                due,
                expires: at,
                terms: terms(),
            },
            3 => Effect::Kept,
            4 => Effect::Paused { until: at },
            5 => Effect::Resumed,
            6 => Effect::Remembered { id, until: at },
            7 => Effect::Purged {
                state: states[dice.below(5) as usize],
                cut: at,
            },
            8 => {
                let rate = (at > 5).then_some(Rate {
                    count: due as u32,
                    window_ms: at,
                });
                Effect::Configured(Settings {
                    max_len: due,
                    dedupe_ms: at,
                    rate,
                    ..Settings::default()
                })
            }
            9 => Effect::Dropped,
            10 => Effect::Floors {
                seq: due,
                death: at,
                token,
            },
            _ => Effect::Job { id, change },
        };
        let bytes = match dice.below(4) {
            0 => dice.bytes(40),
            1 => {
                let mut bytes = encoded(&[effect]);
                bytes.extend(dice.bytes(9));
                bytes
            }
            2 => encoded(&[
                Effect::Added {
                    id: b"a",
                    payload: b"",
                    due: 1,
                    expires: 0,
                    terms: terms(),
                },
                effect,
            ]),
            _ => encoded(&[effect]),
        };
        let digest = client.ask("DEBUG DIGEST-VALUE q");
        match client.call(&[b"DQ.APPLY", b"q", &bytes]) {
            Reply::Simple(_) => taken += 1,
            Reply::Error(text) => {
                assert!(text.starts_with("ERR "), "{text}");
                let now = client.ask("DEBUG DIGEST-VALUE q");
                // A lease may have ended in between, of a queue that the timer looks after.
                if now != digest {
                    client.says("FLUSHALL", "+OK");
                    println!("round {round}: changed by the timer, or by {text}");
                }
            }
            other => panic!("{}", show(&other)),
        }
        if round % 10 == 0 {
            client.run("DQ.POP q");
            client.run("DQ.ADD q * x");
        }
        if round % 1000 == 999 {
            is_well(&server, &replica);
        }
    }
    assert!(taken > 100, "{taken} taken");
    is_well(&server, &replica);
    // All or nothing.
    client.says("FLUSHALL", "+OK");
    let half = encoded(&[
        Effect::Added {
            id: b"a",
            payload: b"",
            due: 1,
            expires: 0,
            terms: terms(),
        },
        Effect::Job {
            id: b"none",
            change: Change::TimedOut,
        },
    ]);
    assert!(show(&client.call(&[b"DQ.APPLY", b"q", &half])).starts_with("-ERR "));
    client.says("EXISTS q", "0");
    client.says("DQ.ADD q b x", "'b'");
    assert!(show(&client.call(&[b"DQ.APPLY", b"q", &half])).starts_with("-ERR "));
    client.says("DQ.LEN q", "1");
    client.says("SET s x", "+OK");
    assert!(show(&client.call(&[b"DQ.APPLY", b"s", &half])).starts_with("-WRONGTYPE "));
}

#[test]
fn acl_sees_every_key() {
    let server = Server::start();
    let mut admin = server.raw();
    admin.says("ACL SETUSER worker on nopass ~q* +@all", "+OK");
    admin.says("ACL SETUSER reader on nopass %R~q* +@all", "+OK");
    admin.says(
        "ACL SETUSER named on nopass ~q* -@all +dq.add +dq.bpop",
        "+OK",
    );
    admin.says("DQ.ADD q a x", "'a'");
    let mut worker = login(&server, "worker");
    for line in [
        "DQ.BPOP q x 0",
        "DQ.BPOP x q 0",
        "DQ.BPOP q x q 0 COUNT 2 TTR 5 NOACK",
        "DQ.BPOP q q2 q3 x 0.1 NOACK",
        "DQ.ADD x a x",
        "DQ.POP x",
        "DQ.GET x a",
        "DQ.CFGSET x",
        "DQ.APPLY x x",
    ] {
        is_refused(&mut worker, line);
    }
    worker.begin("DQ.BPOP q2 q 0 COUNT 1");
    assert!(worker.reply().contains("'a'"));
    let mut reader = login(&server, "reader");
    for line in READS {
        let reply = reader.ask(line);
        assert!(!reply.starts_with('-'), "{line} -> {reply}");
    }
    for line in WRITES.iter().chain(&["DQ.GET x a", "DQ.APPLY q x"]) {
        is_refused(&mut reader, line);
    }
    let mut named = login(&server, "named");
    named.says("DQ.ADD q c x", "'c'");
    is_refused(&mut named, "DQ.ACK q c");
    is_refused(&mut named, "DQ.BPOP q x 0");
    assert_eq!(server.blocked(), 0);
}

const READS: [&str; 6] = [
    "DQ.GET q a",
    "DQ.LEN q",
    "DQ.STATS q",
    "DQ.PEEK q READY",
    "DQ.SCAN q 0",
    "DQ.CFGGET q",
];
const WRITES: [&str; 8] = [
    "DQ.POP q",
    "DQ.ADD q b x",
    "DQ.BPOP q 0.01",
    "DQ.DEL q a",
    "DQ.ACK q a",
    "DQ.PAUSE q",
    "DQ.CFGSET q",
    "DQ.PURGE q ALL",
];

fn login(server: &Server, user: &str) -> Raw {
    let mut client = server.raw();
    client.says(&format!("AUTH {user} x"), "+OK");
    client
}

#[track_caller]
fn is_refused(client: &mut Raw, line: &str) {
    let reply = client.ask(line);
    assert!(reply.starts_with("-NOPERM "), "{line} -> {reply}");
}

#[test]
fn acl_categories() {
    let server = Server::start();
    if server.version().is_redis() && !server.version().at_least(7, 2) {
        return skipped("Redis 7.0 knows no ACL categories of modules' commands");
    }
    let mut admin = server.raw();
    for (user, rules) in [
        ("worker", "~q* +@all -@admin"),
        ("reader", "%R~q* +@read"),
        ("writer", "~q* +@write"),
        ("safe", "~q* +@all -@dangerous"),
        ("lister", "~q* +@list"),
        ("patient", "~q* +@all -@blocking"),
    ] {
        admin.says(&format!("ACL SETUSER {user} on nopass {rules}"), "+OK");
    }
    admin.says("DQ.ADD q a x", "'a'");
    let mut reader = login(&server, "reader");
    for line in READS {
        let reply = reader.ask(line);
        assert!(!reply.starts_with('-'), "{line} -> {reply}");
    }
    let mut lister = login(&server, "lister");
    for line in WRITES {
        is_refused(&mut reader, line);
        is_refused(&mut lister, line);
    }
    for user in ["worker", "safe", "reader"] {
        is_refused(&mut login(&server, user), "DQ.APPLY q x");
    }
    is_refused(&mut login(&server, "patient"), "DQ.BPOP q 0.01");
    let mut writer = login(&server, "writer");
    writer.says("DQ.ADD q b x", "'b'");
    is_refused(&mut writer, "DQ.GET q b");
}

#[test]
fn the_keys_of_commands() {
    let server = Server::start();
    let mut client = server.raw();
    for (line, keys) in [
        ("DQ.BPOP a b c 0", "a b c"),
        ("DQ.BPOP a 0 COUNT 5", "a"),
        ("DQ.BPOP a b 0.5 NOACK TTR 5 COUNT 5", "a b"),
        ("DQ.BPOP COUNT 5 0", "COUNT 5"),
        ("DQ.BPOP NOACK NOACK NOACK", "NOACK"),
        ("DQ.BPOP a COUNT 5 TTR", "a COUNT 5"),
        ("DQ.ADD q i p", "q"),
        ("DQ.ACK q i j", "q"),
        ("DQ.SCAN q 0", "q"),
        ("DQ.APPLY q x", "q"),
    ] {
        let got = client.words(&format!("COMMAND GETKEYS {line}"));
        assert_eq!(got.join(" "), keys, "{line}");
    }
    for line in ["DQ.BPOP a", "DQ.BPOP", "DQ.BPOP 0 NOACK"] {
        let reply = client.ask(&format!("COMMAND GETKEYS {line}"));
        // "0 NOACK": the key 0 with the timeout NOACK.
        assert!(
            reply.starts_with('-') || line.ends_with("0 NOACK"),
            "{line} -> {reply}"
        );
    }
    for (line, flags) in [
        ("DQ.BPOP q r 0", "RW"),
        ("DQ.ADD q i p", "RW"),
        ("DQ.GET q i", "RO"),
        ("DQ.LEN q", "RO"),
    ] {
        let reply = client.ask(&format!("COMMAND GETKEYSANDFLAGS {line}"));
        assert!(
            reply.contains(&format!("'q' [ +{flags} ")),
            "{line} -> {reply}"
        );
    }
}

/// Out of memory: what adds is refused, what takes away works; and the timer goes on.
#[test]
fn out_of_memory() {
    let (server, replica) = pair(Server::builder().aof());
    let mut client = server.raw();
    for number in 0..10 {
        client.run(&format!("DQ.ADD q {number} x"));
    }
    client.run("DQ.POP q COUNT 2 TTR 200");
    client.says("DQ.ADD q later x DELAY 100 PRIORITY -1", "'later'");
    let mut waiting = server.waiting("DQ.BPOP q2 0");
    client.says("CONFIG SET maxmemory 1000", "+OK");
    for line in ["DQ.ADD q more x", "DQ.CFGSET q TTR 5", "DQ.PAUSE q"] {
        let reply = client.ask(line);
        assert!(reply.starts_with("-OOM "), "{line} -> {reply}");
    }
    client.begin("DQ.POP q");
    let job = client.delivery();
    assert!(client.int(&format!("DQ.TOUCH q {} TTR 90000", job.id)) as u64 > job.deadline);
    client.says(&format!("DQ.ACK q {}", job.id), "1");
    client.says("DQ.DEL q 9", "1");
    client.run("DQ.POP q ID 8");
    client.says("DQ.NACK q 8", "'ready'");
    client.says("DQ.RESCHEDULE q DELAY 5 8", "1");
    client.says("DQ.RESUME q", "+OK");
    wait_until("leases end", PATIENCE, || {
        server.number("dq", "dq_timed_out_total") == 2
    });
    client.begin("DQ.BPOP q 0");
    assert_eq!(client.delivery().id, "later");
    client.says("DQ.PURGE q ALL", "9");
    client.says("CONFIG SET maxmemory 0", "+OK");
    client.says("DQ.ADD q2 a x", "'a'");
    assert_eq!(waiting.delivery().id, "a");
    server.assert_followed_by(&[&replica]);
}

#[test]
fn a_replica_refuses_what_changes() {
    let (server, replica) = pair(Server::builder());
    server.raw().says("DQ.ADD q a x", "'a'");
    replica.wait_for_offset_of(&server);
    let mut client = replica.raw();
    let digest = replica.digest();
    for line in [
        "DQ.ADD q b x",
        "DQ.POP q",
        "DQ.BPOP q 0",
        "DQ.ACK q a",
        "DQ.DEL q a",
        "DQ.NACK q a",
        "DQ.TOUCH q a",
        "DQ.RESCHEDULE q DELAY 0 a",
        "DQ.KICK q COUNT 1",
        "DQ.PURGE q ALL",
        "DQ.CFGSET q",
        "DQ.PAUSE q",
        "DQ.RESUME q",
        "DQ.APPLY q x",
    ] {
        let reply = client.ask(line);
        assert!(reply.starts_with("-READONLY "), "{line} -> {reply}");
    }
    client.says("DQ.LEN q READY", "1");
    assert_eq!(replica.digest(), digest);
}

#[test]
fn the_module_stays() {
    let server = Server::start();
    let mut client = server.raw();
    client.says("DQ.ADD q a x DELAY 200", "'a'");
    let mut waiting = server.waiting("DQ.BPOP q 0");
    let reply = client.ask("MODULE UNLOAD dq");
    assert!(reply.starts_with("-ERR "), "{reply}");
    let module = crate::support::locate::module_path();
    let reply = client.call(&[b"MODULE", b"LOAD", module.to_string_lossy().as_bytes()]);
    assert!(show(&reply).starts_with("-ERR "), "{}", show(&reply));
    // From another path it is another library, of the same name.
    let copy = server.folder().join("copy.so");
    std::fs::copy(&module, &copy).expect("a copy of the module");
    let reply = client.call(&[b"MODULE", b"LOAD", copy.to_string_lossy().as_bytes()]);
    assert!(show(&reply).starts_with("-ERR "), "{}", show(&reply));
    assert_eq!(waiting.delivery().id, "a");
    client.says("DQ.ACK q a", "1");
}

/// A command that only reads may find a lease at its end: what follows of that must be carried by the
/// server in any place where such a command may stand.
#[test]
fn reading_what_is_past_anywhere() {
    let (server, replica) = pair(Server::builder().aof());
    let mut client = server.raw();
    let flagged: &[u8] = b"#!lua flags=no-writes\nreturn redis.call('DQ.LEN', KEYS[1], 'RESERVED')";
    let plain: &[u8] = b"return redis.call('DQ.LEN', KEYS[1], 'RESERVED')";
    let library =
        b"#!lua name=lib\nredis.register_function{function_name='len', flags={'no-writes'}, \
        callback=function(keys) return redis.call('DQ.LEN', keys[1], 'RESERVED') end}";
    client.call(&[b"FUNCTION", b"LOAD", library]);
    let multi = [
        raw::encode(&[b"MULTI"]),
        raw::encode(&[b"DQ.LEN", b"q", b"RESERVED"]),
        raw::encode(&[b"EXEC"]),
    ];
    let looks = [
        raw::encode(&[b"DQ.LEN", b"q", b"RESERVED"]),
        raw::encode(&[b"EVAL_RO", plain, b"1", b"q"]),
        raw::encode(&[b"EVAL", flagged, b"1", b"q"]),
        raw::encode(&[b"EVAL", plain, b"1", b"q"]),
        raw::encode(&[b"FCALL_RO", b"len", b"1", b"q"]),
        multi.concat(),
    ];
    for look in looks {
        client.run("DEL q");
        client.says("DQ.ADD q a x", "'a'");
        client.says("DQ.ADD q b x ATTEMPTS 1", "'b'");
        client.run("DQ.POP q COUNT 2 TTR 20");
        // In one packet: the leases end while the server sleeps, and the look comes before the timer.
        let mut bytes = raw::encode(&[b"DEBUG", b"SLEEP", b"0.05"]);
        bytes.extend(&look);
        client.send(&bytes);
        assert_eq!(client.reply(), "+OK");
        let mut reply = client.reply();
        if reply == "+OK" {
            client.read();
            reply = client.reply();
        }
        assert!(reply == "0" || reply == "[ 0 ]", "{reply}");
        client.says("DQ.LEN q DEAD", "1");
        server.assert_followed_by(&[&replica]);
    }
    server.assert_no_crash();
}
