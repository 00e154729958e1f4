//! DUMP payloads as the server makes them, forged but with a valid checksum; and whether a server is well after it got
//! one.

use dq::queue::attr::Attrs;
use dq::queue::codec::{encode, EFFECTS_VERSION};
use dq::queue::effect::Effect;
use dq::queue::job::{Life, Place, Terms};
use dq::queue::state::{NewJob, Rows};

use crate::scene::{Lines, Scene};
use crate::support::{Raw, Reply, Server};

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
        "DQ.CFGSET full TTR 5000 ATTEMPTS 3 BACKOFF 2 10 20 MAXLEN 100 DEADLEN 9 DEDUPE 60000 MAXRESERVED 50 RATE 1000 1000 DONELEN 9 DONETTL 60000",
        "DQ.ADD full delayed payload DELAY 60000 PRIORITY -3 TTL 90000",
        "DQ.ADD full ready \\x00\\xff",
        "DQ.ADD full leased x PRIORITY -9",
        "DQ.ADD full acked x PRIORITY -8",
        "DQ.ADD full dead x PRIORITY -7",
        "DQ.POP full COUNT 3",
        "DQ.ACK full acked",
        "DQ.NACK full dead FATAL REASON why",
        "DQ.ADD full leased next NEXT DELAY 60000",
        "DQ.ADD full each x EVERY 86400000 TIMES 9 GRACE 60000",
        "DQ.ADD full yearly x CRON 0\\x200\\x201\\x201\\x20* TZ Europe/Berlin JITTER 50",
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

pub const TERMS: Terms<'static> = Terms {
    priority: 0,
    ttr_ms: 1000,
    max_attempts: 0,
    rest: Attrs::NONE,
};

/// Jobs as they stand.
pub fn written(jobs: &[NewJob<'_>]) -> Effect<'static> {
    let mut rows = Rows::default();
    jobs.iter().for_each(|job| rows.push(job));
    let rows = rows.bytes().to_vec().leak();
    Effect::Rows { rows }
}

pub fn stored(id: &[u8], seq: u64, due: u64, place: Place, life: Life) -> Effect<'static> {
    let job = NewJob::scheduled(id, b"x", (due, 0), &TERMS);
    written(&[NewJob {
        seq,
        place,
        life,
        ..job
    }])
}

pub fn restore(client: &mut Raw, key: &[u8], payload: &[u8]) -> Reply {
    client.call(&[b"RESTORE", key, b"0", payload, b"REPLACE"])
}

/// The server continues to work: memory, file, replica.
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
