//! Thousands of payloads that no server has dumped: those accepted work like any queue, and are the same on the replica
//! and after a reload. And byte streams that are hardly commands.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use dq::queue::effect::Effect;
use dq::queue::job::{Life, Place};

use crate::payloads::{dump, forged, is_well, repaired, restore, stored, wrapped};
use crate::probe::show;
use crate::scene::{pair, Dice, Lines};
use crate::support::{raw, Raw, Reply, Server};

const KEYS: u64 = 12;

/// The first chunk of effects in a DUMP payload that is not compressed.
fn chunk(payload: &[u8]) -> &[u8] {
    let (head, rest) = payload[10..].split_at(2);
    assert_eq!(head[0], 5, "a string follows");
    let (length, rest) = match head[1] >> 6 {
        0 => (head[1] as usize, rest),
        1 => ((head[1] as usize & 63) << 8 | rest[0] as usize, &rest[1..]),
        _ => panic!("a long or a compressed string"),
    };
    &rest[..length]
}

/// Dumps of queues of several kinds.
fn dumps(client: &mut Raw) -> Vec<Vec<u8>> {
    let many: Vec<String> = (0..40)
        .map(|n| {
            format!(
                "DQ.ADD q j{n} p{n} DELAY {} PRIORITY {} TTL 60000",
                n % 7 * 20,
                n % 3
            )
        })
        .collect();
    let histories: [&[&str]; 5] = [
        &["DQ.ADD q a x", "DQ.ADD q b x DELAY 30 TTL 40"],
        &[
            "DQ.CFGSET q DEDUPE 50 DEADLEN 2 RATE 3 20",
            "DQ.ADD q a x ATTEMPTS 1",
            "DQ.ADD q b x BACKOFF 3 1 2 3",
            "DQ.POP q COUNT 2 TTR 25",
            "DQ.ACK q b",
            "DQ.ADD q c x",
        ],
        &["DQ.PAUSE q 40", "DQ.ADD q a x AT 0 PRIORITY -2147483648"],
        &[
            "DQ.GROUPSET q g MAX 1 MAXLEN 5 WEIGHT 3 RATE 2 20",
            "DQ.GROUPSET q none RATE 0 0",
            "DQ.PAUSE q 25 GROUP h",
            "DQ.ADD q a x GROUP g",
            "DQ.ADD q b x GROUP h",
            "DQ.POP q TTR 25",
        ],
        &many.iter().map(String::as_str).collect::<Vec<_>>(),
    ];
    let mut dumps = vec![dump(client)];
    for history in histories {
        client.run("DEL q");
        for line in history {
            let reply = client.ask(line);
            assert!(!reply.starts_with('-'), "{line} -> {reply}");
        }
        let Reply::Bulk(payload) = client.run("DUMP q") else {
            panic!("no dump");
        };
        dumps.push(payload);
    }
    client.run("DEL q");
    dumps
}

/// Flips bits; inserts, removes or doubles bytes; or appends the tail of another chunk.
pub fn damaged(bytes: &[u8], other: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..1 + dice.below(4) {
        // The first byte is the version, tried rarely.
        let at = 1 + dice.below(bytes.len().max(2) as u64 - 1) as usize % bytes.len().max(1);
        if at >= bytes.len() {
            continue;
        }
        match dice.below(8) {
            0 => bytes.truncate(at + 1),
            1 => {
                bytes.truncate(at);
                bytes.extend(&other[dice.below(other.len() as u64) as usize..]);
            }
            2 => bytes.insert(at, dice.next() as u8),
            3 => drop(bytes.remove(at)),
            4 => {
                let end = (at + dice.below(40) as usize).min(bytes.len());
                bytes.extend_from_within(at..end);
            }
            5 => bytes[at] = dice.next() as u8,
            _ => bytes[at] ^= 1 << dice.below(8),
        }
    }
    bytes
}

/// Sends every command to a queue with unknown contents.
fn work_on(client: &mut Raw, key: &str, dice: &mut Dice) {
    let id = *dice.pick(&[&"a", &"b", &"delayed", &"leased", &"j3", &"new"]);
    for line in [
        format!("DQ.SCAN {key} 0 COUNT 100"),
        format!("DQ.PEEK {key} DELAYED COUNT 5"),
        format!("DQ.PEEK {key} READY COUNT 5"),
        format!("DQ.PEEK {key} RESERVED COUNT 5 FROM 5"),
        format!("DQ.PEEK {key} DEAD COUNT 5"),
        format!("DQ.STATS {key}"),
        format!("DQ.CFGGET {key}"),
        format!("DQ.EXPLAIN {key}"),
        format!("DQ.EXPLAIN {key} {id}"),
        format!("DQ.GROUPS {key} 0 SET"),
        format!("DQ.GROUPGET {key} g"),
        format!(
            "DQ.GROUPSET {key} g {}",
            dice.pick(&["MAX 2", "RATE 3 9", "CLEAR"])
        ),
        format!("DQ.RESUME {key} GROUP {}", dice.pick(&["g", "h"])),
        format!("DQ.PAUSE {key} 5 GROUP {}", dice.pick(&["g", "h"])),
        format!("DQ.GET {key} {id}"),
        format!("MEMORY USAGE {key}"),
        format!("DEBUG DIGEST-VALUE {key}"),
        format!("DQ.POP {key} COUNT 2 TTR {}", 1 + dice.below(30)),
        format!("DQ.NACK {key} {id} PRIORITY 3"),
        format!("DQ.TOUCH {key} {id} TTR 5"),
        format!("DQ.RESCHEDULE {key} DELAY 5 {id}"),
        format!("DQ.KICK {key} COUNT 3"),
        format!("DQ.ADD {key} {id} again REPLACE TTL 30"),
        format!("COPY {key} copy REPLACE"),
        format!("DQ.PURGE copy {}", dice.pick(&["READY", "DELAYED", "ALL"])),
        format!(
            "DQ.PURGE {key} {}",
            dice.pick(&["DEAD", "READY", "RESERVED"])
        ),
        format!("DQ.ACK {key} {id}"),
    ] {
        let reply = client.ask(&line);
        let sound = !reply.starts_with('-')
            || reply.starts_with("-MAXLEN ")
            || reply.starts_with("-ERR no such key");
        assert!(sound, "{line} -> {reply}");
    }
}

#[test]
fn damaged_queues_are_worked_on() {
    const ROUNDS: usize = 2000;
    let (server, replica) = pair(Server::builder().aof().config("rdbcompression", "no"));
    let mut client = server.raw();
    let dumps = dumps(&mut client);
    let chunks: Vec<&[u8]> = dumps.iter().map(|dump| chunk(dump)).collect();
    let mut dice = Dice::new(0xbad);
    let (mut taken, mut refused) = (0, 0);
    let mut waiting = server.raw();
    let wait = "DQ.BPOP k1 k2 k3 k4 k5 0.02 COUNT 2 TTR 10";
    waiting.begin(wait);
    for round in 1..=ROUNDS {
        let key = format!("k{}", dice.below(KEYS));
        let (one, other) = (dice.pick(&chunks), dice.pick(&chunks));
        let bytes = damaged(one, other, &mut dice);
        let payload = match dice.below(10) {
            // The head, the lengths and the end of the payload, too.
            0 => {
                let whole = dice.pick(&dumps.iter().map(Vec::as_slice).collect::<Vec<_>>());
                let mut payload = damaged(whole, &bytes, &mut dice);
                payload.extend(&dumps[0][dumps[0].len() - 10..]);
                repaired(payload)
            }
            _ => wrapped(&dumps[0], &bytes),
        };
        match restore(&mut client, key.as_bytes(), &payload) {
            Reply::Simple(_) => {
                taken += 1;
                work_on(&mut client, &key, &mut dice);
            }
            Reply::Error(text) => {
                assert!(text.starts_with("ERR "), "{text}");
                refused += 1;
            }
            other => panic!("{}", show(&other)),
        }
        if waiting.try_read(Duration::from_micros(50)).is_some() {
            waiting.begin(wait);
        }
        if round % (ROUNDS / 4) == 0 {
            is_well(&server, &replica);
        }
    }
    println!("{taken} taken, {refused} refused");
    assert!(taken > ROUNDS / 20 && refused > ROUNDS / 20);
}

/// The order of two such jobs would be undefined: different after a reload or on a replica.
#[test]
fn numbers_that_two_jobs_share_are_refused() {
    let server = Server::start();
    let mut client = server.raw();
    let life = Life::default();
    let same_seq = [
        stored(b"a", 7, 1, Place::Scheduled, life),
        stored(b"b", 7, 1000, Place::Scheduled, life),
    ];
    let dead = Life {
        at: 5,
        death: 3,
        ..life
    };
    let same_death = [
        stored(b"a", 7, 1, Place::Dead, dead),
        stored(b"b", 8, 1, Place::Dead, dead),
    ];
    let mut is_taken = |effects: &[Effect<'_>]| {
        let payload = forged(&mut client, effects);
        let restored = show(&restore(&mut client, b"q", &payload));
        assert!(restored == "+OK" || restored.starts_with("-ERR "));
        client.run("DEL q");
        restored == "+OK"
    };
    assert!(!is_taken(&same_seq));
    assert!(!is_taken(&same_death));
    assert!(is_taken(&same_seq[..1]));
    assert!(is_taken(&same_death[1..]));
}

/// The server closes a connection on invalid input, and continues for all others.
#[test]
fn lines_and_halves_of_packets() {
    let (server, replica) = pair(Server::builder());
    let mut client = server.raw();
    // The inline protocol.
    client.send(b"DQ.ADD q a \"\\x00 y\"\r\nDQ.POP q NOACK\r\n");
    assert_eq!(client.reply(), "'a'");
    assert!(client.reply().starts_with("[ 'a' "));
    let mut dice = Dice::new(0x1ae);
    let whole = raw::encode(&[b"DQ.ADD", b"q", b"b", b"payload", b"DELAY", b"90000"]);
    let blocking = raw::encode(&[b"DQ.BPOP", b"none", b"0"]);
    for round in 0..600 {
        // No checks on sending: the server may have hung up already.
        let mut stream =
            TcpStream::connect(("127.0.0.1", server.port())).expect("the server listens");
        let bytes: Vec<u8> = match round % 6 {
            0 => whole[..dice.below(whole.len() as u64) as usize].to_vec(),
            1 => dice.bytes(200),
            2 => {
                let mut bytes = whole.clone();
                let at = dice.below(bytes.len() as u64) as usize;
                bytes[at] = dice.next() as u8;
                bytes
            }
            3 => {
                let head = *dice.pick(&[
                    &"*1000000000\r\n",
                    &"*3\r\n$-1\r\n",
                    &"*2\r\n$6\r\nDQ.ADD\r\n$999999999999\r\n",
                    &"*2\r\n$7\r\nDQ.BPOP\r\n$0\r\n\r\n",
                    &"*-5\r\n*0\r\n",
                    &"DQ.ADD \"q a x\r\n",
                    &"DQ.BPOP q 'x\r\n",
                ]);
                head.as_bytes().to_vec()
            }
            // Sends a blocking command and half of another, and disconnects.
            4 => [&blocking[..], &whole[..20]].concat(),
            _ => [&whole[..], &blocking[..], &dice.bytes(30)[..]].concat(),
        };
        let cut = dice.below(bytes.len() as u64 + 1) as usize;
        let _ = stream.write_all(&bytes[..cut]);
        let _ = stream.flush();
        let _ = stream.write_all(&bytes[cut..]);
        if round % 2 == 0 {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
    // A command in single bytes; on a key of its own, since what came before may not have been read yet.
    for byte in &raw::encode(&[b"DQ.ADD", b"bytes", b"c", b"payload"]) {
        client.send(&[*byte]);
    }
    assert_eq!(client.reply(), "'c'");
    is_well(&server, &replica);
}
