//! Nothing that a client sends kills the server, reaches more than it may, or makes a replica differ.

use dq::queue::effect::{Change, Effect};
use dq::queue::job::{Life, Place};

use crate::payloads::{dump, forged, is_well, repaired, restore, stored};
use crate::probe::show;
use crate::scene::{pair, Dice, Lines, WORDS};
use crate::support::{Raw, Reply, Server};

const COMMANDS: &[&str] = &[
    "DQ.ADD",
    "DQ.POP",
    "DQ.BPOP",
    "DQ.ACK",
    "DQ.DEL",
    "DQ.NACK",
    "DQ.TOUCH",
    "DQ.BTOUCH",
    "DQ.AWAIT",
    "DQ.UNBLOCK",
    "DQ.RESCHEDULE",
    "DQ.KICK",
    "DQ.MADD",
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

/// Beside those of the commands.
const HOSTILE_WORDS: &[&str] = &[
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

fn arguments(dice: &mut Dice, words: &[&str]) -> Vec<Vec<u8>> {
    let name = dice.pick(COMMANDS);
    let count = dice.below(9);
    let mut arguments: Vec<Vec<u8>> = vec![name.as_bytes().to_vec()];
    for at in 0..count {
        arguments.push(match dice.below(12) {
            0 => dice.bytes(20),
            1 => b"\0\xff\r\n".to_vec(),
            2 => vec![b'x'; 1 + 1024 * (dice.below(3) as usize)],
            _ if at == 0 => b"q".to_vec(),
            _ => dice.pick(words).as_bytes().to_vec(),
        });
    }
    // Else it waits for ever.
    let timeout = dice.pick(&["0.0001", "1e-9", "-1", "x", "1e-320"]);
    match (name, arguments.get_mut(2)) {
        ("DQ.BPOP", _) => arguments.push(timeout.as_bytes().to_vec()),
        ("DQ.AWAIT" | "DQ.BTOUCH", Some(argument)) => *argument = timeout.as_bytes().to_vec(),
        _ => {}
    }
    arguments
}

#[test]
fn hostile_arguments() {
    const ROUNDS: usize = 20_000;
    let (server, replica) = pair(Server::builder().config("proto-max-bulk-len", "512mb"));
    let mut client = server.raw();
    let mut dice = Dice::new(0x5afe);
    let words = [HOSTILE_WORDS, &WORDS].concat();
    client.says("SET s string", "+OK");
    for round in 0..ROUNDS {
        let arguments = arguments(&mut dice, &words);
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

/// Guards against a panic of the host on data that a type cannot load, and against trusting lengths.
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
    // Without a valid checksum the payload is not even parsed.
    let mut payload = real.clone();
    payload[20] ^= 1;
    assert!(show(&restore(&mut client, b"q", &payload))
        .starts_with("-ERR DUMP payload version or checksum"));
}

type Forgeries = Vec<Vec<Effect<'static>>>;

fn forged_tokens() -> Forgeries {
    const TOKENS: [u64; 6] = [
        1 << 61,
        (1 << 62) - 1,
        1 << 62,
        (1 << 62) + 1,
        1 << 63,
        u64::MAX,
    ];
    let mut forgeries = Forgeries::new();
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
    forgeries
}

fn forged_seqs() -> Forgeries {
    const SEQS: [u64; 6] = [
        1 << 45,
        (1 << 46) + 1,
        1 << 47,
        (1 << 47) + 1,
        (1 << 48) - 1,
        u64::MAX,
    ];
    let mut forgeries = Forgeries::new();
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
    forgeries
}

fn forged_instants() -> Forgeries {
    let instants = [0, 1, (1 << 42) - 1, 1 << 42, u64::MAX];
    let mut forgeries = Forgeries::new();
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
    forgeries
}

fn forged_attempts() -> Forgeries {
    let life = Life {
        attempts: u32::MAX,
        ..Life::default()
    };
    vec![vec![stored(b"a", 1, 1, Place::Scheduled, life)]]
}

fn numbers_given_twice() -> Forgeries {
    let life = Life {
        death: 1,
        at: 1,
        ..Life::default()
    };
    vec![
        // Where each must have its own.
        vec![
            stored(b"a", 1, 1, Place::Scheduled, Life::default()),
            stored(b"b", 1, 1, Place::Scheduled, Life::default()),
            stored(b"c", 1, 1, Place::Scheduled, Life::default()),
        ],
        vec![
            stored(b"a", 1, 1, Place::Dead, life),
            stored(b"b", 2, 1, Place::Dead, life),
        ],
    ]
}

/// The largest numbers that are accepted must leave room to count on from them: otherwise the master would reach
/// numbers that its replica, and its own file, refuse.
#[test]
fn forged_numbers_do_not_poison_what_follows() {
    let forgeries = [
        forged_tokens(),
        forged_seqs(),
        forged_instants(),
        forged_attempts(),
        numbers_given_twice(),
    ]
    .concat();
    let (mut server, replica) = pair(Server::builder().aof());
    let (mut taken, mut refused) = (0, 0);
    for effects in &forgeries {
        let mut client = server.raw();
        let payload = forged(&mut client, effects);
        match restore(&mut client, b"q", &payload) {
            Reply::Simple(_) => taken += 1,
            _ => refused += 1,
        }
        // How such a queue continues, and a normal one beside it.
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
