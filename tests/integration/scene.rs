//! Shared by the tests of hazards: connections that speak lines (see `probe`), waiting clients,
//! deliveries, and reading a server's AOF.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::probe::{packed, plain, show};
use crate::support::{poll, wait_for, wait_until, Builder, Raw, Reply, Server, PATIENCE};

/// The clock of this machine, which is that of its servers.
pub fn now_ms() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    since_epoch.expect("a clock past 1970").as_millis() as u64
}

/// Lets an interval pass, for tests that nothing happens during it.
pub fn let_pass(interval: Duration) {
    poll(interval, || None::<()>);
}

pub trait Lines {
    /// Sends a line without waiting.
    fn begin(&mut self, line: &str);
    fn run(&mut self, line: &str) -> Reply;
    /// The reply as text.
    fn ask(&mut self, line: &str) -> String;
    fn says(&mut self, line: &str, expected: &str);
    fn int(&mut self, line: &str) -> i64;
    /// A flat array's words, or the one word.
    fn words(&mut self, line: &str) -> Vec<String>;
    /// What a waiting client gets.
    fn delivery(&mut self) -> Delivery;
    /// The reply to the command that was begun, as text.
    fn reply(&mut self) -> String;
}

impl Lines for Raw {
    fn begin(&mut self, line: &str) {
        self.send(&packed(line));
    }

    #[track_caller]
    fn run(&mut self, line: &str) -> Reply {
        self.begin(line);
        self.read()
    }

    #[track_caller]
    fn ask(&mut self, line: &str) -> String {
        show(&self.run(line))
    }

    #[track_caller]
    fn says(&mut self, line: &str, expected: &str) {
        assert_eq!(self.ask(line), expected, "the reply to {line}");
    }

    #[track_caller]
    fn int(&mut self, line: &str) -> i64 {
        match self.run(line) {
            Reply::Integer(number) => number,
            other => panic!("{line} -> {}", show(&other)),
        }
    }

    #[track_caller]
    fn words(&mut self, line: &str) -> Vec<String> {
        match self.run(line) {
            Reply::Array(items) => items.iter().map(plain).collect(),
            other => vec![plain(&other)],
        }
    }

    #[track_caller]
    fn delivery(&mut self) -> Delivery {
        let reply = self.read();
        Delivery::of(&reply).unwrap_or_else(|| panic!("no delivery: {}", show(&reply)))
    }

    #[track_caller]
    fn reply(&mut self) -> String {
        show(&self.read())
    }
}

/// The reply of DQ.POP (without a key) and DQ.BPOP.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    pub key: String,
    pub id: String,
    pub payload: String,
    pub token: String,
    pub attempts: i64,
    /// 0: none.
    pub deadline: u64,
}

impl Delivery {
    pub fn of(reply: &Reply) -> Option<Delivery> {
        let Reply::Array(items) = reply else {
            return None;
        };
        let (key, rest) = match items.len() {
            5 => (String::new(), &items[..]),
            6 => (plain(&items[0]), &items[1..]),
            _ => return None,
        };
        let [id, payload, token, Reply::Integer(attempts), deadline] = rest else {
            return None;
        };
        Some(Delivery {
            key,
            id: plain(id),
            payload: plain(payload),
            token: plain(token),
            attempts: *attempts,
            deadline: match deadline {
                Reply::Integer(deadline) => *deadline as u64,
                _ => 0,
            },
        })
    }
}

/// Words that commands know, for random ones.
pub const WORDS: [&str; 22] = [
    "NX",
    "XX",
    "REPLACE",
    "DELAY",
    "AT",
    "PRIORITY",
    "TTR",
    "ATTEMPTS",
    "BACKOFF",
    "TTL",
    "COUNT",
    "ID",
    "NOACK",
    "TOKEN",
    "SILENT",
    "FAIL",
    "FATAL",
    "UNRESERVED",
    "IDS",
    "READY",
    "DEAD",
    "MAXLEN",
];

/// What the server says of its clients and of its work.
pub trait Scene {
    fn blocked(&self) -> usize;
    fn wait_for_blocked(&self, count: usize);
    /// A client that waits, after all that wait already.
    fn waiting(&self, line: &str) -> Raw;
    /// Seconds of CPU that the server has used.
    fn cpu(&self) -> f64;
    /// A number of INFO.
    fn number(&self, section: &str, field: &str) -> u64;
    /// All commands in the AOF, those of the base file first if it is one.
    fn aof(&self) -> Vec<Vec<Vec<u8>>>;
    /// How often a command stands in the AOF, by its name in capitals.
    fn count_in_aof(&self, name: &str) -> usize;
    /// Asserts equal data on servers that follow this one, with writing stopped meanwhile.
    fn assert_followed_by(&self, followers: &[&Server]);
}

impl Scene for Server {
    fn blocked(&self) -> usize {
        self.number("clients", "blocked_clients") as usize
    }

    #[track_caller]
    fn wait_for_blocked(&self, count: usize) {
        let mut client = self.connect();
        let count = count.to_string();
        wait_until(format!("{count} clients wait"), PATIENCE, || {
            client.info("clients", "blocked_clients").as_deref() == Some(&count)
        });
    }

    #[track_caller]
    fn waiting(&self, line: &str) -> Raw {
        let before = self.blocked();
        let mut client = self.raw();
        client.begin(line);
        self.wait_for_blocked(before + 1);
        client
    }

    #[track_caller]
    fn cpu(&self) -> f64 {
        let seconds = |field| self.info("cpu", field).parse::<f64>().expect("seconds");
        seconds("used_cpu_user") + seconds("used_cpu_sys")
    }

    #[track_caller]
    fn number(&self, section: &str, field: &str) -> u64 {
        self.info(section, field).parse().expect("a number")
    }

    #[track_caller]
    fn aof(&self) -> Vec<Vec<Vec<u8>>> {
        let folder = self.folder().join("appendonlydir");
        // A file that a rewrite removes meanwhile is looked for again.
        let files = wait_for("files that stay", PATIENCE, || {
            let mut files: Vec<_> = fs::read_dir(&folder)
                .expect("the folder of the AOF")
                .map(|entry| entry.expect("a file").path())
                .filter(|path| path.extension().is_some_and(|kind| kind == "aof"))
                .collect();
            files.sort(); // "base" comes before "incr"
            let read = files.iter().map(fs::read);
            read.collect::<Result<Vec<_>, _>>().ok()
        });
        files.iter().flat_map(|file| commands_in(file)).collect()
    }

    #[track_caller]
    fn count_in_aof(&self, name: &str) -> usize {
        let named = |command: &&Vec<Vec<u8>>| command[0].eq_ignore_ascii_case(name.as_bytes());
        self.aof().iter().filter(named).count()
    }

    #[track_caller]
    fn assert_followed_by(&self, followers: &[&Server]) {
        let mut client = self.raw();
        client.says("CLIENT PAUSE 60000 WRITE", "+OK");
        for follower in followers {
            follower.assert_same_data_as(self);
        }
        client.says("CLIENT UNPAUSE", "+OK");
    }
}

fn commands_in(bytes: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut commands = Vec::new();
    let mut at = 0;
    while bytes.get(at) == Some(&b'*') {
        let Some((Reply::Array(words), length)) = Reply::parse(&bytes[at..]) else {
            break;
        };
        let word = |word: Reply| match word {
            Reply::Bulk(bytes) => bytes,
            other => panic!("in the AOF: {other:?}"),
        };
        commands.push(words.into_iter().map(word).collect());
        at += length;
    }
    commands
}

/// A master and a replica of it.
#[track_caller]
pub fn pair(builder: Builder) -> (Server, Server) {
    let (master, replica) = (builder.clone().start(), builder.start());
    replica.replica_of(&master);
    (master, replica)
}

/// Random numbers from a seed, which a failing test prints.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        println!("seed {seed}");
        Dice(seed)
    }

    /// splitmix64
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len() as u64) as usize]
    }

    pub fn bytes(&mut self, longest: u64) -> Vec<u8> {
        let length = self.below(longest + 1);
        (0..length).map(|_| self.next() as u8).collect()
    }
}
