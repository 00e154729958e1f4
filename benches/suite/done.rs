//! Jobs that are done and kept: what each takes, and whether a queue holds to the bytes that it may keep.

use super::host::Host;
use super::jobs::{dq, id, payload, scattered};
use super::plan::{Plan, MILLION};
use super::report::{Goal, Part, Row};
use super::stats::most;
use super::wire::{encode, Connection, Decimal};

const QUEUE: &[u8] = b"dq";
/// Added, delivered and acknowledged together.
const TOGETHER: usize = 100;
/// Of ids, payloads and results, in the run with random lengths.
const LIMIT: u64 = 16_000_000;
/// A page of jobs (see src/storage/arena.rs).
const PAGE: f64 = 8192.0;

/// A server, and what it took before there was a job.
struct Kept {
    host: Host,
    client: Connection,
    empty: f64,
}

/// Bytes of a job's payload and of its result.
type Lengths = fn(usize) -> (usize, usize);

pub fn measure(plan: Plan) -> Part {
    let jobs = if plan.slow_rounds > 2 {
        MILLION
    } else {
        MILLION / 10
    };
    let mut rows = vec![
        beside(jobs, "DONELEN", b"100000000"),
        beside(jobs, "DONETTL", b"86400000"),
    ];
    rows.extend(bounded(jobs));
    Part {
        rows,
        how: format!(
            "  {jobs} jobs, ids of 16 bytes, payloads of 64, results of 10 to 49, {TOGETHER} at a time added, delivered and\n\
             \x20 acknowledged: growth of used_memory, less done-bytes, per job. Then as many with payloads of 0 to 399 and results of\n\
             \x20 0 to 199 bytes in a queue with DONEBYTES {LIMIT}: done-bytes asked for after each {TOGETHER}. Each once.\n"
        ),
        ..Part::default()
    }
}

fn beside(jobs: usize, setting: &str, value: &[u8]) -> Row {
    let mut kept = Kept::start(setting, value);
    kept.run(jobs, |number| (64, 10 + number * 7 % 40), |_| ());
    let bytes = kept.beside() / jobs as f64;
    let what =
        format!("memory of a done job beside id, payload and result, {setting}, {jobs} of them");
    Row::alone(what, "bytes", Goal::Below(40.0, 24.0), &[bytes])
}

fn bounded(jobs: usize) -> Vec<Row> {
    let mut kept = Kept::start("DONEBYTES", LIMIT.to_string().as_bytes());
    let lengths = |number| {
        let random = scattered(number as u64) as usize;
        (random % 400, random / 400 % 200)
    };
    let mut beyond = vec![];
    kept.run(jobs, lengths, |host| {
        let bytes = host.info_number("dq", "dq_done_bytes");
        beyond.push(bytes - LIMIT as f64);
    });
    let each = kept.beside() / kept.host.info_number("dq", "dq_jobs_done");
    kept.client.call(&[b"DQ.PURGE", QUEUE, b"DONE"]);
    kept.grown();
    let left = kept.usage();
    let what = |text| format!("DONEBYTES {LIMIT}, random lengths: {text}");
    vec![
        Row::alone(
            what("the most beyond it"),
            "bytes",
            Goal::Below(PAGE, 0.0),
            &[most(&beyond)],
        ),
        Row::alone(
            what("memory of a done job beside it"),
            "bytes",
            Goal::Told,
            &[each],
        ),
        Row::alone(
            what("MEMORY USAGE once it is purged"),
            "bytes",
            Goal::Below(PAGE, 1024.0),
            &[left],
        ),
    ]
}

impl Kept {
    fn start(setting: &str, value: &[u8]) -> Kept {
        let host = Host::start();
        let mut client = host.connect();
        client.call(&[b"DQ.CFGSET", QUEUE, setting.as_bytes(), value]);
        let mut kept = Kept {
            empty: 0.0,
            client,
            host,
        };
        kept.empty = kept.grown();
        kept
    }

    /// So many jobs live and are done; `look` after each few.
    fn run(&mut self, jobs: usize, lengths: Lengths, mut look: impl FnMut(&mut Host)) {
        for first in (0..jobs).step_by(TOGETHER) {
            let numbers = first..first + TOGETHER;
            let lived = numbers.map(|number| (id(number), lengths(number)));
            let lived: Vec<_> = lived.collect();
            self.add(&lived);
            self.finish(&lived);
            look(&mut self.host);
        }
    }

    fn add(&mut self, jobs: &[([u8; 16], (usize, usize))]) {
        let payloads: Vec<Vec<u8>> = jobs.iter().map(|(id, (len, _))| text(id, *len)).collect();
        let jobs = jobs.iter().zip(&payloads);
        let jobs: Vec<_> = jobs
            .map(|((id, _), payload)| (&id[..], &payload[..]))
            .collect();
        let mut out = Vec::new();
        dq::add_many(&mut out, &jobs, None);
        self.client.send(&out);
        self.client.receive_done(1);
    }

    fn finish(&mut self, jobs: &[([u8; 16], (usize, usize))]) {
        let count = Decimal::of(jobs.len() as u64);
        let reply = self
            .client
            .call(&[b"DQ.POP", QUEUE, b"COUNT", count.bytes()]);
        let lines: Vec<&[u8]> = reply
            .split(|&byte| byte == b'\n')
            .map(<[u8]>::trim_ascii_end)
            .collect();
        // Behind the first line nine of each job: id, payload and token each behind their lengths, two numbers.
        let delivered: Vec<(&[u8], &[u8])> = lines[1..]
            .chunks_exact(9)
            .map(|job| (job[2], job[6]))
            .collect();
        assert_eq!(delivered.len(), jobs.len(), "all are delivered");
        let results: Vec<Vec<u8>> = jobs.iter().map(|(id, (_, len))| text(id, *len)).collect();
        let mut words: Vec<&[u8]> = vec![b"DQ.ACK", QUEUE, b"RESULTS"];
        for ((id, token), result) in delivered.iter().zip(&results) {
            words.extend([*id, *token, &result[..]]);
        }
        let mut out = Vec::new();
        encode(&mut out, &words);
        self.client.send(&out);
        self.client.receive_done(1);
    }

    /// Without what clients take: buffers grow with what they have sent.
    fn grown(&mut self) -> f64 {
        self.host.wait_until_memory_rests();
        let clients = self.host.info_number("memory", "mem_clients_normal");
        self.host.used_memory() - clients - self.empty
    }

    /// What the server says of the key.
    fn usage(&mut self) -> f64 {
        let reply = self.client.call(&[b"MEMORY", b"USAGE", QUEUE]);
        let digits = std::str::from_utf8(&reply[1..]).map(str::trim);
        digits
            .ok()
            .and_then(|it| it.parse().ok())
            .expect("a number")
    }

    /// What is neither id nor payload nor result.
    fn beside(&mut self) -> f64 {
        self.grown() - self.host.info_number("dq", "dq_done_bytes")
    }
}

/// So many letters, other ones for another id.
fn text(id: &[u8], len: usize) -> Vec<u8> {
    let start = id.iter().fold(0usize, |sum, &byte| {
        sum.wrapping_mul(31) + usize::from(byte)
    }) % 100_000;
    let parts = (start..).flat_map(|number| payload(number).iter().copied());
    parts.take(len).collect()
}
