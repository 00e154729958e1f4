//! An AOF cut at any place: the server loads it, and has the data of the last whole command (or transaction) before the
//! cut. Never half a command.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use redis::Value;

use crate::actor::{set_bounds, Actor};
use crate::clock::Clock;
use crate::cmd;
use crate::report::seeds;
use crate::rng::Rng;
use crate::support::place::last_aof;
use crate::support::{skipped, wait_until, Client, Reply, Server, PATIENCE};
use crate::workload::builder;

/// What a server wrote, and its data at each step.
struct Written {
    bytes: Vec<u8>,
    /// Digests, by the length of the file at that time.
    digests: BTreeMap<usize, String>,
    /// Where commands end; a transaction counts as one.
    ends: Vec<usize>,
    /// The server that wrote it, killed: its folder is still needed.
    server: Server,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Cuts {
    /// Cuts at the ends of commands.
    pub at_ends: u64,
    /// Of these, the ones compared with the digest of the server that wrote the file, taken at that moment.
    pub told: u64,
    /// Cuts within commands and transactions.
    pub elsewhere: u64,
}

impl Cuts {
    pub fn add(&mut self, other: &Cuts) {
        self.at_ends += other.at_ends;
        self.told += other.told;
        self.elsewhere += other.elsewhere;
    }
}

#[track_caller]
fn digest(client: &mut Client) -> String {
    match cmd!(client, "DEBUG", "DIGEST") {
        Value::SimpleString(digest) => digest,
        other => panic!("DEBUG DIGEST -> {other:?}"),
    }
}

/// Sends a few hundred commands from one client, and notes the file's length and the digest after each.
fn write(seed: u64, commands: usize) -> Written {
    // Every command is passed to the kernel before it is answered.
    let mut server = builder()
        .config("appendonly", "yes")
        .config("appendfsync", "no")
        .start();
    let mut client = server.connect();
    set_bounds(&mut client);
    let mut actor = Actor::new(0, seed, Clock::new());
    let file = last_aof(server.folder());
    let length = || fs::metadata(&file).expect("a file").len() as usize;
    let mut digests = BTreeMap::new();
    for _ in 0..commands {
        assert!(actor.step(&mut client).is_ok(), "the server is well");
        // The timer may have written in between.
        let before = length();
        let digest = digest(&mut client);
        if length() == before {
            digests.insert(before, digest);
        }
    }
    server.kill();
    let bytes = fs::read(&file).expect("a file");
    Written {
        ends: ends(&bytes),
        bytes,
        digests,
        server,
    }
}

/// The commands of an AOF: their names, and where they end.
fn commands(bytes: &[u8]) -> Vec<(String, usize)> {
    let mut at = 0;
    let mut commands = Vec::new();
    while let Some((reply, length)) = Reply::parse(&bytes[at..]).filter(|_| at < bytes.len()) {
        at += length;
        let Reply::Array(words) = reply else {
            panic!("no command in the AOF: {reply:?}");
        };
        let Reply::Bulk(name) = &words[0] else {
            panic!("no command in the AOF: {words:?}");
        };
        commands.push((String::from_utf8_lossy(name).to_uppercase(), at));
    }
    assert_eq!(at, bytes.len(), "whole commands");
    commands
}

fn ends(bytes: &[u8]) -> Vec<usize> {
    let mut open = false;
    let mut ends = vec![0];
    for (name, end) in commands(bytes) {
        open = (open || name == "MULTI") && name != "EXEC";
        if !open {
            ends.push(end);
        }
    }
    ends
}

/// A server that changes nothing by itself, and loads whatever is in the file.
struct Loader {
    server: Server,
    client: Client,
    file: PathBuf,
}

impl Loader {
    fn new(written: &Written) -> Loader {
        let server = builder()
            .config("appendonly", "yes")
            .config("replicaof", "127.0.0.1 1")
            .with_files_of(written.server.folder())
            .start();
        Loader {
            client: server.connect(),
            file: last_aof(server.folder()),
            server,
        }
    }

    /// Loads a file of whole commands: with any other, DEBUG LOADAOF ends the server, even if it may load cut files.
    #[track_caller]
    fn load(&mut self, bytes: &[u8]) -> String {
        fs::write(&self.file, bytes).expect("a file to write");
        cmd!(self.client, "DEBUG", "LOADAOF");
        digest(&mut self.client)
    }

    /// Loads any file, as at every start; also returns how many bytes the server has left of it.
    #[track_caller]
    fn start_with(&mut self, bytes: &[u8]) -> (String, usize) {
        self.server.kill();
        fs::write(&self.file, bytes).expect("a file to write");
        self.server.restart();
        self.client = self.server.connect();
        let left = fs::metadata(&self.file).expect("a file").len();
        (digest(&mut self.client), left as usize)
    }
}

/// Cuts at the end of every command, and at `others` other places.
#[track_caller]
pub fn run(seed: u64, others: u64) -> Cuts {
    let written = write(seed, 300);
    let mut loader = Loader::new(&written);
    let mut cuts = Cuts::default();
    // The digest that is expected after each command: the writer's, or that of loading the whole commands.
    let mut whole: BTreeMap<usize, String> = BTreeMap::new();
    for &end in &written.ends {
        let loaded = loader.load(&written.bytes[..end]);
        if let Some(told) = written.digests.get(&end) {
            assert_eq!(loaded, *told, "cut at {end}: not what it was (seed {seed})");
            cuts.told += 1;
        }
        whole.insert(end, loaded);
    }
    cuts.at_ends = whole.len() as u64;
    assert!(cuts.told * 2 > cuts.at_ends, "{cuts:?}");
    let mut rng = Rng::new(seed ^ 0x0063_7574);
    for _ in 0..others {
        let place = match rng.one_in(8) {
            // One byte too few, or one too many.
            true => (*rng.pick(&written.ends)).max(1) - 1 + 2 * rng.below(2) as usize,
            false => rng.below(written.bytes.len() as u64) as usize,
        };
        let place = place.min(written.bytes.len());
        let (end, expected) = whole.range(..=place).next_back().expect("0 is one");
        let (loaded, left) = loader.start_with(&written.bytes[..place]);
        let text = format!("cut at {place}: not what it was at {end} (seed {seed})");
        assert_eq!(loaded, *expected, "{text}");
        // The servers may leave whole commands of a transaction in the file, though they carry out none of them.
        let whole = commands(&written.bytes[*end..left]);
        let is_begun = whole.first().is_none_or(|(name, _)| name == "MULTI");
        assert!(is_begun && left <= place, "{whole:?} is left of {place}");
        cuts.elsewhere += 1;
    }
    loader.server.assert_no_crash();
    cuts
}

#[test]
fn an_aof_cut_anywhere() {
    for seed in seeds(3) {
        let start = Instant::now();
        println!("AOF: {:?} in {:?}", run(seed, 60), start.elapsed());
    }
}

fn rewrite(client: &mut Client) {
    cmd!(client, "BGREWRITEAOF");
    wait_until("the AOF is rewritten", PATIENCE, || {
        let is = |client: &mut Client, field: &str| client.info("persistence", field);
        is(client, "aof_rewrite_in_progress").as_deref() == Some("0")
            && is(client, "aof_rewrite_scheduled").as_deref() == Some("0")
    });
}

/// When a transaction is cut in its second command or later, Redis (7.0 to 8.6) and Valkey before 9.1.2 leave a MULTI
/// without its EXEC at the end of the file, and append to it. What is appended is lost at the next start, together with
/// the transaction. A rewrite of the AOF prevents that; docs/operations.md says so.
#[test]
fn a_cut_transaction_is_healed_by_a_rewrite() {
    let written = write(5, 300);
    let all = commands(&written.bytes);
    let is_multi = |at: &usize| all[*at].0 == "MULTI" && all[*at + 1].0 == "DQ.APPLY";
    let multi = (0..all.len()).rfind(is_multi).expect("a transaction");
    let mut loader = Loader::new(&written);
    loader.start_with(&written.bytes[..all[multi + 1].1 + 7]);
    loader.server.promote();
    let client = &mut loader.client;
    rewrite(client);
    cmd!(client, "CONFIG", "SET", "appendfsync", "always");
    cmd!(client, "DQ.ADD", "new", "job", "x");
    loader.server.kill();
    loader.server.restart();
    let length = cmd!(loader.server.connect(), "DQ.LEN", "new");
    assert_eq!(length, Value::Int(1));
}

/// Runs the script of docs/steps.md on an AOF that ends within its last command, then another transaction. Returns what
/// exists of the first one after the next start: its step, and what was moved.
fn after_two_starts(heals: impl Fn(&mut Client)) -> (bool, [Value; 2]) {
    const MOVE: &str =
        "if not redis.call('DQ.STEP', KEYS[1], ARGV[1], ARGV[2], 'moved', '10') then return nil end
        redis.call('DECRBY', KEYS[2], 10) redis.call('INCRBY', KEYS[3], 10) return 1";
    let mut server = builder()
        .config("appendonly", "yes")
        .config("appendfsync", "always")
        .start();
    let mut client = server.connect();
    cmd!(client, "DQ.ADD", "q", "j", "x");
    let Value::Array(job) = cmd!(client, "DQ.POP", "q", "TTR", 600_000) else {
        panic!("it is ready");
    };
    let token = match &job[2] {
        Value::BulkString(token) => token.clone(),
        other => panic!("{other:?} is no token"),
    };
    let moved = cmd!(
        client,
        "EVAL",
        MOVE,
        3,
        "q",
        "from",
        "to",
        "j",
        token.as_slice()
    );
    assert_eq!(moved, Value::Int(1));
    server.kill();
    let file = last_aof(server.folder());
    let bytes = fs::read(&file).expect("a file");
    let &(_, last) = commands(&bytes).iter().rev().nth(1).expect("before EXEC");
    fs::write(&file, &bytes[..last - 3]).expect("a file to write");
    server.restart();
    client = server.connect();
    assert_eq!(
        cmd!(client, "GET", "from"),
        Value::Nil,
        "it drops the transaction"
    );
    heals(&mut client);
    cmd!(
        client,
        "EVAL",
        "redis.call('SET', 'a', 1) redis.call('SET', 'b', 1)",
        0
    );
    server.kill();
    server.restart();
    client = server.connect();
    assert_eq!(cmd!(client, "GET", "b"), Value::BulkString(b"1".to_vec()));
    let is_kept = says(&cmd!(client, "DQ.GET", "q", "j"), b"moved");
    server.assert_no_crash();
    (is_kept, ["from", "to"].map(|key| cmd!(client, "GET", key)))
}

fn says(reply: &Value, word: &[u8]) -> bool {
    match reply {
        Value::BulkString(text) => text == word,
        Value::Array(all) => all.iter().any(|each| says(each, word)),
        _ => false,
    }
}

#[test]
fn a_step_and_what_a_script_moved_are_both_there_or_neither_after_a_rewrite() {
    assert_eq!(after_two_starts(rewrite), (false, [Value::Nil, Value::Nil]));
}

/// The case that docs/operations.md warns of.
#[test]
fn canary_without_a_rewrite_half_of_it_comes_back() {
    let server = builder().start();
    let version = server.version();
    if version.is_valkey() && version.number >= (9, 1, 2) {
        return skipped(format!("{version} cuts off whole transactions"));
    }
    let half = (true, [Value::BulkString(b"-10".to_vec()), Value::Nil]);
    assert_eq!(after_two_starts(|_| ()), half);
}

/// A file that lacks one command, or a cut treated as no transaction, must be noticed.
#[test]
fn canary_what_is_missing_shows() {
    let written = write(3, 300);
    let mut loader = Loader::new(&written);
    let (&end, told) = written.digests.last_key_value().expect("digests");
    assert_eq!(loader.load(&written.bytes[..end]), *told);
    let all = commands(&written.bytes[..end]);
    let begins = |at: usize| at.checked_sub(1).map_or(0, |before| all[before].1);
    // The last job that was added: nothing after it depends on it.
    let is_effect = |at: &usize| all[*at].0 == "DQ.APPLY";
    let last = (0..all.len()).rev().find(is_effect).expect("an effect");
    let mut without = written.bytes[..begins(last)].to_vec();
    without.extend_from_slice(&written.bytes[all[last].1..end]);
    assert_ne!(loader.load(&without), *told, "one command less");
    // Only the first effect of a transaction with two.
    let is_pair = |at: &usize| {
        let names = all[*at..].iter().take(3).map(|(name, _)| name.as_str());
        names.eq(["MULTI", "DQ.APPLY", "DQ.APPLY"])
    };
    let multi = (0..all.len()).find(is_pair).expect("a transaction");
    let mut half = written.bytes[..begins(multi)].to_vec();
    let before = loader.load(&half);
    half.extend_from_slice(&written.bytes[all[multi].1..all[multi + 1].1]);
    assert_ne!(loader.load(&half), before, "half a transaction");
}
