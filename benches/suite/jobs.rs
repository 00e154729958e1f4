//! The jobs that all are measured with, and what puts them into a queue, a sorted set, or a sorted set
//! with a hash beside it, kept together by scripts.

use std::sync::OnceLock;

use super::host::Host;
use super::machine::now_ms;
use super::wire::{encode, Decimal};

pub const ID_BYTES: usize = 16;
pub const PAYLOAD_BYTES: usize = 64;

/// What every job is made of, and when it was to be due.
pub const RAW_BYTES: usize = ID_BYTES + PAYLOAD_BYTES + 8;

const HOUR_MS: u64 = 3_600_000;

/// Scatters numbers, the same way in every run (splitmix64).
pub fn scattered(number: u64) -> u64 {
    let mut bits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// An id of its own for each number, in no order.
pub fn id(number: usize) -> [u8; ID_BYTES] {
    let bits = scattered(number as u64);
    std::array::from_fn(|at| b"0123456789abcdef"[(bits >> (4 * at)) as usize & 15])
}

/// Text that looks random, and hardly ever like that of another number.
pub fn payload(number: usize) -> &'static [u8] {
    const POOL_BYTES: usize = 1 << 20;
    static POOL: OnceLock<Vec<u8>> = OnceLock::new();
    let pool = POOL.get_or_init(|| {
        let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let letter = |at| letters[scattered(at) as usize % letters.len()];
        (0..POOL_BYTES as u64).map(letter).collect()
    });
    let start = scattered(number as u64) as usize % (POOL_BYTES - PAYLOAD_BYTES);
    &pool[start..start + PAYLOAD_BYTES]
}

/// From an hour to a day: nothing falls due while it is measured.
pub fn far_delay_ms(number: usize) -> u64 {
    HOUR_MS + scattered(!(number as u64)) % (23 * HOUR_MS)
}

/// The instant when all that was ready by then was due.
fn start_ms() -> u64 {
    static START: OnceLock<u64> = OnceLock::new();
    *START.get_or_init(|| now_ms() - HOUR_MS)
}

/// Each a little later than the one before.
fn ready_since_ms(number: usize) -> u64 {
    start_ms() + number as u64
}

pub fn far_due_ms(number: usize) -> u64 {
    start_ms() + 2 * HOUR_MS + far_delay_ms(number)
}

/// The commands of the module, on the queue `dq`.
pub mod dq {
    use super::*;

    pub fn add_far(out: &mut Vec<u8>, number: usize) {
        add_far_by(out, b"DQ.ADD", number);
    }

    /// Id and payload of each; all due at once, or so much later.
    pub fn add_many(out: &mut Vec<u8>, jobs: &[(&[u8], &[u8])], delay_ms: Option<u64>) {
        let (count, delay) = (Decimal::of(jobs.len() as u64), delay_ms.map(Decimal::of));
        let mut words: Vec<&[u8]> = vec![b"DQ.MADD", b"dq", count.bytes()];
        words.extend(jobs.iter().flat_map(|(id, payload)| [*id, *payload]));
        if let Some(delay) = &delay {
            words.extend([b"DELAY", delay.bytes()]);
        }
        encode(out, &words);
    }

    /// The far jobs of those numbers in one command: due together, as its options are those of each.
    pub fn add_far_together(
        out: &mut Vec<u8>,
        numbers: std::ops::Range<usize>,
        payload_bytes: usize,
    ) {
        let delay_ms = far_delay_ms(numbers.start);
        let ids: Vec<_> = numbers
            .map(|number| (id(number), payload(number)))
            .collect();
        let jobs: Vec<_> = ids
            .iter()
            .map(|(id, payload)| (&id[..], &payload[..payload_bytes]))
            .collect();
        add_many(out, &jobs, Some(delay_ms));
    }

    pub fn add_far_by(out: &mut Vec<u8>, command: &[u8], number: usize) {
        add_far_on(out, command, b"dq", number);
    }

    pub fn add_far_to(out: &mut Vec<u8>, key: &[u8], number: usize) {
        add_far_on(out, b"DQ.ADD", key, number);
    }

    fn add_far_on(out: &mut Vec<u8>, command: &[u8], key: &[u8], number: usize) {
        let delay = Decimal::of(far_delay_ms(number));
        let (id, payload) = (id(number), payload(number));
        encode(out, &[command, key, &id, payload, b"DELAY", delay.bytes()]);
    }

    pub fn add_ready(out: &mut Vec<u8>, number: usize) {
        encode(out, &[b"DQ.ADD", b"dq", &id(number), payload(number)]);
    }

    /// A ready job, and a group of its own.
    pub fn add_to_group(out: &mut Vec<u8>, number: usize) {
        let (id, payload) = (id(number), payload(number));
        encode(out, &[b"DQ.ADD", b"dq", &id, payload, b"GROUP", &id]);
    }

    /// Gives the group of that job settings of its own.
    pub fn set_group(out: &mut Vec<u8>, number: usize) {
        let words = b"WEIGHT 3 MAX 5 RATE 100 60000 MAXLEN 100".split(|&byte| byte == b' ');
        let id = id(number);
        let mut command: Vec<&[u8]> = vec![b"DQ.GROUPSET", b"dq", &id];
        command.extend(words);
        encode(out, &command);
    }

    pub fn add_at(out: &mut Vec<u8>, key: &[u8], number: usize, due_ms: u64) {
        let due = Decimal::of(due_ms);
        let (id, payload) = (id(number), payload(number));
        encode(out, &[b"DQ.ADD", key, &id, payload, b"AT", due.bytes()]);
    }

    /// Its occurrence ends by itself at that instant, and the next one comes within five seconds of one in an hour.
    pub fn add_skipped_at(out: &mut Vec<u8>, number: usize, end_ms: u64) {
        let due = Decimal::of(end_ms - 1000);
        let (id, payload) = (id(number), payload(number));
        let rule = b"EVERY 3600000 GRACE 1000 JITTER 5000".split(|&byte| byte == b' ');
        let mut words: Vec<&[u8]> = vec![b"DQ.ADD", b"dq", &id, payload, b"AT", due.bytes()];
        words.extend(rule);
        encode(out, &words);
    }

    pub fn pop(out: &mut Vec<u8>, _number: usize) {
        encode(out, &[b"DQ.POP", b"dq"]);
    }

    pub fn ack(out: &mut Vec<u8>, number: usize) {
        encode(out, &[b"DQ.ACK", b"dq", &id(number)]);
    }

    pub fn pop_many(out: &mut Vec<u8>, count: usize) {
        let count = Decimal::of(count as u64);
        encode(out, &[b"DQ.POP", b"dq", b"COUNT", count.bytes()]);
    }

    pub fn ack_many(out: &mut Vec<u8>, first: usize, count: usize) {
        on_many(out, &[b"DQ.ACK", b"dq"], (first, first + count));
    }

    pub fn delete(out: &mut Vec<u8>, key: &[u8], numbers: (usize, usize)) {
        on_many(out, &[b"DQ.DEL", key], numbers);
    }
}

/// Commands of the same arguments and replies that do nothing: see benches/floor.
pub mod floor {
    use super::*;

    pub fn add_far(out: &mut Vec<u8>, number: usize) {
        dq::add_far_by(out, b"FLOOR.ADD", number);
    }

    pub fn pop(out: &mut Vec<u8>, _number: usize) {
        encode(out, &[b"FLOOR.POP", b"dq"]);
    }

    pub fn ack(out: &mut Vec<u8>, number: usize) {
        encode(out, &[b"FLOOR.ACK", b"dq", &id(number)]);
    }
}

/// The sorted set `zset` alone.
pub mod zset {
    use super::*;

    pub fn add_far(out: &mut Vec<u8>, number: usize) {
        add_at(out, b"zset", number, far_due_ms(number));
    }

    pub fn add_ready(out: &mut Vec<u8>, number: usize) {
        add_at(out, b"zset", number, ready_since_ms(number));
    }

    pub fn add_at(out: &mut Vec<u8>, key: &[u8], number: usize, due_ms: u64) {
        let due = Decimal::of(due_ms);
        encode(out, &[b"ZADD", key, due.bytes(), &id(number)]);
    }

    pub fn remove(out: &mut Vec<u8>, key: &[u8], numbers: (usize, usize)) {
        on_many(out, &[b"ZREM", key], numbers);
    }
}

/// The sorted set `zset` alone, with the payload in the member, behind the id.
pub mod members {
    use super::*;

    pub fn add_far(out: &mut Vec<u8>, number: usize) {
        add_at(out, number, far_due_ms(number));
    }

    pub fn add_ready(out: &mut Vec<u8>, number: usize) {
        add_at(out, number, ready_since_ms(number));
    }

    fn add_at(out: &mut Vec<u8>, number: usize, due_ms: u64) {
        let due = Decimal::of(due_ms);
        encode(out, &[b"ZADD", b"zset", due.bytes(), &member(number)]);
    }
}

fn member(number: usize) -> Vec<u8> {
    [&id(number)[..], payload(number)].concat()
}

/// The sorted set `{jobs}due`, with the payloads in the hash `{jobs}data`: what a script keeps together.
pub mod zset_and_hash {
    use super::*;

    /// The commands of a job are two: those of number n have the numbers 2n and 2n + 1.
    pub fn add_far(out: &mut Vec<u8>, command: usize) {
        let number = command / 2;
        match command % 2 {
            0 => zset::add_at(out, b"{jobs}due", number, far_due_ms(number)),
            _ => encode(out, &[b"HSET", b"{jobs}data", &id(number), payload(number)]),
        }
    }

    /// As `add_far`, on two keys that nothing else is on.
    pub fn add_alone(out: &mut Vec<u8>, prefix: &str, command: usize) {
        let (number, due, data) = (command / 2, format!("{prefix}due"), format!("{prefix}data"));
        match command % 2 {
            0 => zset::add_at(out, due.as_bytes(), number, far_due_ms(number)),
            _ => encode(
                out,
                &[b"HSET", data.as_bytes(), &id(number), payload(number)],
            ),
        }
    }

    pub fn remove_due(out: &mut Vec<u8>, numbers: (usize, usize)) {
        zset::remove(out, b"{jobs}due", numbers);
    }

    pub fn remove_data(out: &mut Vec<u8>, numbers: (usize, usize)) {
        on_many(out, &[b"HDEL", b"{jobs}data"], numbers);
    }

    /// Of the hash that goes with that sorted set (see `Scripts::add_to`).
    pub fn remove_data_of(out: &mut Vec<u8>, key: &[u8], numbers: (usize, usize)) {
        on_many(out, &[b"HDEL", &[key, b" data"].concat()], numbers);
    }
}

fn on_many(out: &mut Vec<u8>, command: &[&[u8]], (first, end): (usize, usize)) {
    let ids: Vec<[u8; ID_BYTES]> = (first..end).map(id).collect();
    let ids = ids.iter().map(|id| &id[..]);
    encode(out, &command.iter().copied().chain(ids).collect::<Vec<_>>());
}

const ADD: &str = "redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2]) \
    return redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])";

/// What is not due goes back: cheaper than to look before.
const POP_MEMBER: &str = "local job = redis.call('ZPOPMIN', KEYS[1]) \
    if not job[1] then return nil end \
    if tonumber(job[2]) > tonumber(ARGV[1]) then \
        redis.call('ZADD', KEYS[1], job[2], job[1]) return nil end \
    redis.call('ZADD', KEYS[2], ARGV[2], job[1]) \
    return job[1]";

const POP: &str = "local job = redis.call('ZPOPMIN', KEYS[1]) \
    if not job[1] then return nil end \
    if tonumber(job[2]) > tonumber(ARGV[1]) then \
        redis.call('ZADD', KEYS[1], job[2], job[1]) return nil end \
    redis.call('ZADD', KEYS[2], ARGV[2], job[1]) \
    return {job[1], redis.call('HGET', KEYS[3], job[1])}";

const ACK_MEMBER: &str = "return redis.call('ZREM', KEYS[1], ARGV[1])";

const ACK: &str = "redis.call('HDEL', KEYS[2], ARGV[1]) \
    return redis.call('ZREM', KEYS[1], ARGV[1])";

/// Called by their digests, as clients do.
pub struct Scripts {
    add: Vec<u8>,
    pop: Vec<u8>,
    pop_member: Vec<u8>,
    ack: Vec<u8>,
    ack_member: Vec<u8>,
}

impl Scripts {
    pub fn load(host: &mut Host) -> Scripts {
        let mut load = |script: &str| {
            let reply = host.call(&[b"SCRIPT", b"LOAD", script.as_bytes()]);
            reply[5..45].to_vec() // $40\r\n and 40 digits
        };
        Scripts {
            add: load(ADD),
            pop: load(POP),
            pop_member: load(POP_MEMBER),
            ack: load(ACK),
            ack_member: load(ACK_MEMBER),
        }
    }

    pub fn add_far(&self, out: &mut Vec<u8>, number: usize) {
        self.add_at(out, number, far_due_ms(number));
    }

    pub fn add_ready(&self, out: &mut Vec<u8>, number: usize) {
        self.add_at(out, number, ready_since_ms(number));
    }

    fn add_at(&self, out: &mut Vec<u8>, number: usize, due_ms: u64) {
        self.add_to_keys(out, [b"{jobs}due", b"{jobs}data"], number, due_ms);
    }

    /// To the sorted set of that name, and a hash of a like name.
    pub fn add_to(&self, out: &mut Vec<u8>, key: &[u8], number: usize, due_ms: u64) {
        self.add_to_keys(out, [key, &[key, b" data"].concat()], number, due_ms);
    }

    fn add_to_keys(&self, out: &mut Vec<u8>, keys: [&[u8]; 2], number: usize, due_ms: u64) {
        let due = Decimal::of(due_ms);
        let job: [&[u8]; 3] = [due.bytes(), &id(number), payload(number)];
        call(out, &self.add, &keys, &job);
    }

    pub fn pop(&self, out: &mut Vec<u8>, number: usize) {
        let keys: [&[u8]; 3] = [b"{jobs}due", b"{jobs}processing", b"{jobs}data"];
        pop_from(out, &self.pop, &keys, number);
    }

    pub fn pop_member(&self, out: &mut Vec<u8>, number: usize) {
        pop_from(out, &self.pop_member, &[b"zset", b"processing"], number);
    }

    pub fn ack(&self, out: &mut Vec<u8>, number: usize) {
        let keys: [&[u8]; 2] = [b"{jobs}processing", b"{jobs}data"];
        call(out, &self.ack, &keys, &[&id(number)]);
    }

    pub fn ack_member(&self, out: &mut Vec<u8>, number: usize) {
        call(out, &self.ack_member, &[b"processing"], &[&member(number)]);
    }
}

/// With leases that end in the order in which they begin.
fn pop_from(out: &mut Vec<u8>, digest: &[u8], keys: &[&[u8]], number: usize) {
    let now = start_ms() + HOUR_MS;
    let (end, now) = (Decimal::of(now + number as u64), Decimal::of(now));
    call(out, digest, keys, &[now.bytes(), end.bytes()]);
}

fn call(out: &mut Vec<u8>, digest: &[u8], keys: &[&[u8]], arguments: &[&[u8]]) {
    let count = Decimal::of(keys.len() as u64);
    let command: [&[u8]; 3] = [b"EVALSHA", digest, count.bytes()];
    encode(out, &[&command, keys, arguments].concat());
}
