//! Random traffic over a few queues: every command, every option, short times, keys that are renamed,
//! copied, moved and flushed, clients that wait; all of it from one seed.

use std::time::Duration;

use crate::scene::{Dice, Lines};
use crate::support::{wait_until, Raw, Server, PATIENCE};
use dq::queue::attr::{Attr, Kind};

/// Rules that do not keep changing a quiet queue: leases and TTLs end within the second.
const RULES: [&str; 10] = [
    "",
    "",
    "",
    "",
    "",
    "",
    " EVERY 3600000 TIMES 2",
    " EVERY 86400000 GRACE 20",
    " CRON 0\\x200\\x201\\x201\\x20* TZ Europe/Berlin JITTER 50 UNTIL 4000000000000",
    " CRON @yearly",
];

/// Uses the current token.
const STEP: &str = "EVAL local\\x20g=redis.call('DQ.GET',KEYS[1],ARGV[1])\\x20return\\x20g\\x20and\\x20g[24]\\x20and\\x20redis.pcall('DQ.STEP',KEYS[1],ARGV[1],g[24],unpack(ARGV,2)) 1";

const KEYS: [&str; 4] = ["q", "r", "p", "s"];

pub struct Traffic {
    dice: Dice,
    client: Raw,
    waiting: Vec<Raw>,
    /// Also what flushes, swaps and expires keys.
    pub rough: bool,
}

impl Traffic {
    pub fn new(server: &Server, seed: u64) -> Traffic {
        Traffic {
            dice: Dice::new(seed),
            client: server.raw(),
            waiting: (0..4)
                .map(|_| {
                    let mut waiting = server.raw();
                    waiting.begin("DQ.BPOP q r 0.01");
                    waiting
                })
                .collect(),
            rough: true,
        }
    }

    /// Sends so many commands, some of them in transactions; none may find the server broken.
    #[track_caller]
    pub fn run(&mut self, commands: usize) {
        let mut sent = Vec::new();
        for number in 0..commands {
            let line = match number % 10 {
                6 => "MULTI".into(),
                9 => "EXEC".into(),
                _ => self.line(),
            };
            self.client.begin(&line);
            sent.push(line);
            if sent.len() == 20 {
                self.read(&mut sent);
                self.wait_again();
            }
        }
        if commands % 10 > 6 {
            self.client.begin("EXEC");
            sent.push("EXEC".into());
        }
        self.read(&mut sent);
        self.wait_again();
    }

    /// Keys no longer expire: a load leaves out those that have, while a pause keeps them.
    #[track_caller]
    pub fn persist(&mut self) {
        for db in [1, 0] {
            self.client.says(&format!("SELECT {db}"), "+OK");
            for key in KEYS {
                self.client.int(&format!("PERSIST {key}"));
            }
        }
    }

    /// No lease outlives its end, and no job its TTL, wherever their queues have gone. Checked on a replica, which
    /// shows what its master said, and changes nothing when asked.
    #[track_caller]
    pub fn settles(&mut self, replica: &Server) {
        let mut client = replica.raw();
        wait_until("all leases have ended", PATIENCE, || {
            (0..=1).all(|db| {
                client.says(&format!("SELECT {db}"), "+OK");
                let mut reserved = |key| client.int(&format!("DQ.LEN {key} RESERVED"));
                KEYS.iter().all(|key| reserved(key) == 0)
            })
        });
    }

    #[track_caller]
    fn read(&mut self, sent: &mut Vec<String>) {
        for line in sent.drain(..) {
            let reply = self.client.reply();
            let sound = !reply.starts_with('-')
                || reply.starts_with("-MAXLEN ")
                || reply.starts_with("-MAXBYTES ")
                || reply.starts_with("-ERR no such key")
                // A queue kept for its waiting clients alone.
                || reply == "-ERR module key failed to copy";
            let sound = sound && (!reply.starts_with('[') || !reply.contains("-ERR internal"));
            assert!(sound, "{line} -> {reply}");
        }
    }

    fn wait_again(&mut self) {
        for number in 0..self.waiting.len() {
            if self.waiting[number]
                .try_read(Duration::from_micros(50))
                .is_some()
            {
                let keys = self.dice.pick(&["q", "q r", "p q", "r s p", "none q"]);
                let options = self.dice.pick(&[
                    "",
                    "COUNT 2",
                    "TTR 15",
                    "NOACK WITHSTEPS",
                    "LEASE 9 WITHTERMS",
                    "COUNT 3 FILL 2 15",
                    "NOACK FILL 4 8 COUNT 9",
                ]);
                let timeout = self.dice.pick(&["0.005", "0.05", "0.5"]);
                self.waiting[number].begin(&format!("DQ.BPOP {keys} {timeout} {options}"));
            }
        }
    }

    fn id(&mut self) -> String {
        format!("j{}", self.dice.below(30))
    }

    fn option(&mut self, word: &str, bound: u64) -> String {
        match self.dice.below(3) {
            0 => format!(" {word} {}", 1 + self.dice.below(bound)),
            _ => String::new(),
        }
    }

    /// What the table lets the command say of a job, each now and then; TTR is the caller's. Numbers are small, so that
    /// jobs end soon.
    fn said(&mut self, command: &str) -> String {
        let rows = Attr::ALL.iter().map(|attr| (attr, attr.row()));
        let said = rows.filter(|(attr, row)| **attr != Attr::Ttr && row.set_by.contains(&command));
        said.map(|(_, row)| {
            let values: [&str; 4] = match row.kind {
                Kind::Number { unit, .. } => {
                    let is_ms = unit == c"ms";
                    return self.option(row.word(), if is_ms { 50 } else { 4 });
                }
                Kind::Text(_) => ["", "", "g", "h"],
                Kind::Ladder => ["", "", "2 5 20", "0"],
            };
            match self.dice.pick(&values) {
                "" => String::new(),
                value => format!(" {} {value}", row.word()),
            }
        })
        .collect()
    }

    /// What only some jobs have.
    fn note(&mut self, key: &str, id: &str) -> String {
        let name = self.dice.pick(&["one", "two", "three"]);
        let other = self.dice.pick(&["one", "two", "three", "\"\""]);
        let delay = self.option("DELAY", 60);
        match self.dice.below(6) {
            0 => format!("DQ.TOUCH {key} {id} PROGRESS {other}"),
            1 => format!("DQ.NACK {key} {id} SILENT AWAIT {name}{delay}"),
            2 => format!("DQ.SIGNAL {key} {id} {name}"),
            3 => format!("DQ.SIGNAL {key} {id} {name} {other}"),
            4 => format!("{STEP} {key} {id} {name} {other}"),
            _ => format!("{STEP} {key} {id} one {other} two {other} {name} again"),
        }
    }

    fn line(&mut self) -> String {
        let key = self.dice.pick(&KEYS);
        let id = self.id();
        let ms = self.dice.below(60);
        if self.dice.below(8) == 0 {
            return self.note(key, &id);
        }
        match self.dice.below(if self.rough { 46 } else { 40 }) {
            12 if ms < 30 => self.add_many(key, &id, ms),
            0..=12 => self.add(key, id, ms),
            13..=17 => self.pop(key),
            18 => format!("DQ.POP {key} ID {id}"),
            19 => format!("DQ.BPOP {key} q 0.001"),
            20..=21 => format!("DQ.ACK {key} {id} {} {}", self.id(), self.id()),
            22 => {
                let result = "r".repeat(ms as usize);
                let script = format!(
                    "local\\x20j=redis.call('DQ.POP',KEYS[1])if\\x20j\\x20then\\x20redis.call('DQ.ACK',KEYS[1],'RESULTS',j[1],j[3],'{result}')end"
                );
                format!("EVAL {script} 1 {key}")
            }
            23..=25 => self.nack(key, &id, ms),
            26 if ms < 10 => format!("DQ.AWAIT {key} 0.001 {id} {}", self.id()),
            26 => {
                let (ttr, said) = (self.option("TTR", 60), self.said("TOUCH"));
                format!("DQ.TOUCH {key} {id}{ttr}{said}")
            }
            27 => format!("DQ.DEL {key} {id} {}", self.id()),
            28 => format!("DQ.DEL {key} UNRESERVED {id} {}", self.id()),
            29 => {
                let (priority, other) = (self.option("PRIORITY", 4), self.id());
                format!("DQ.RESCHEDULE {key} DELAY {ms}{priority} {id} {other}")
            }
            30 => format!("DQ.KICK {key} COUNT 2"),
            31 => format!("DQ.KICK {key} IDS 1 {id}"),
            32 if ms < 20 => {
                let state = self
                    .dice
                    .pick(&["DELAYED", "READY", "RESERVED", "DEAD", "DONE", "ALL"]);
                format!("DQ.PURGE {key} {state}")
            }
            33 => self.configure(key),
            34 if ms < 30 => {
                let settings = [
                    "MAX 1",
                    "MAX 0 MAXLEN 3",
                    "RATE 2 20",
                    "RATE 0 0",
                    "WEIGHT 3",
                    "CLEAR",
                ];
                let group = self.dice.pick(&["g", "g", "h", "i"]);
                format!("DQ.GROUPSET {key} {group} {}", self.dice.pick(&settings))
            }
            34 => format!("DQ.CFGSET {key} DEDUPE 0 MAXRESERVED 0 DEADLEN 0 GROUPFIFO 0"),
            35 if ms < 15 => format!("DQ.PAUSE {key} {} GROUP g", 1 + ms),
            35 => format!("DQ.PAUSE {key} {}", 1 + ms / 4),
            36 if ms < 30 => format!("DQ.RESUME {key} GROUP g"),
            36 => format!("DQ.RESUME {key}"),
            37 => {
                let look = self.dice.pick(&["LEN", "STATS", "CFGGET", "EXPLAIN"]);
                format!("DQ.{look} {key}")
            }
            38 if ms < 20 => {
                let (from, parts) = (1 + ms, 1 + ms / 3);
                format!("DQ.FORECAST {key} FROM {from} TO 4398046511103 BUCKETS {parts}")
            }
            38 if ms < 40 => format!("DQ.SCAN {key} 0"),
            38 if ms < 45 => format!("DQ.GROUPGET {key} g"),
            38 => format!("DQ.GROUPS {key} 0{}", self.dice.pick(&["", " SET"])),
            39 if ms < 20 => format!("DQ.EXPLAIN {key} {id}"),
            39 => format!("DQ.GET {key} {id}"),
            40 => format!("RENAME {key} {}", self.dice.pick(&KEYS)),
            41 => {
                // Another name: onto itself is an error.
                let target = if key == "q" { "r" } else { "q" };
                format!("COPY {key} {target} REPLACE")
            }
            42 => format!("MOVE {key} 1"),
            43 if ms < 15 => "SWAPDB 0 1".into(),
            44 if ms < 20 => format!("DEL {key}"),
            45 if ms < 20 => format!("PEXPIRE {key} {}", 5 + ms),
            _ => format!("DQ.ADD {key} {id} again REPLACE DELAY {ms} TTR 20"),
        }
    }

    fn add_many(&mut self, key: &str, id: &str, ms: u64) -> String {
        let condition = self.dice.pick(&["", "", " XX", " REPLACE"]);
        let delay = self.option("DELAY", 60);
        let other = if ms < 5 { "*".into() } else { self.id() };
        let said = self.said("MADD");
        format!(
            "DQ.MADD {key} 3 {id} m{ms} {other} n {} o{condition}{delay}{said} TTR 30",
            self.id()
        )
    }

    fn add(&mut self, key: &str, id: String, ms: u64) -> String {
        let id = if ms < 5 { "*".into() } else { id };
        let condition = self
            .dice
            .pick(&["", "", " NX", " XX", " REPLACE", " NEXT", " NEXT"]);
        let delay = self.option("DELAY", 60);
        let ttr = format!(" TTR {}", 1 + ms);
        let rule = match condition {
            " NEXT" => "",
            _ => self.dice.pick(&RULES),
        };
        let said = self.said("ADD");
        format!("DQ.ADD {key} {id} p{ms}{condition}{delay}{ttr}{said}{rule}")
    }

    fn pop(&mut self, key: &str) -> String {
        let word = self.dice.pick(&["TTR", "LEASE"]);
        let (count, ttr) = (self.option("COUNT", 4), self.option(word, 50));
        let noack = self.dice.pick(&["", "", " NOACK"]);
        let with = self
            .dice
            .pick(&["", " WITHDUE", " WITHSTEPS", " WITHTERMS WITHDUE WITHSTEPS"]);
        format!("DQ.POP {key}{count}{ttr}{noack}{with}")
    }

    fn nack(&mut self, key: &str, id: &str, ms: u64) -> String {
        let kind = self.dice.pick(&["", " SILENT", " FAIL", " FATAL"]);
        let (delay, priority) = (self.option("DELAY", 40), self.option("PRIORITY", 4));
        let reason = self
            .dice
            .pick(&["", "", " REASON no\\x20route", " REASON \"\""]);
        match self.dice.below(3) {
            0 => format!(
                "DQ.NACK {key} IDS 2 {id} {ms} {} 0{kind}{delay}{priority}{reason}",
                self.id()
            ),
            _ => format!("DQ.NACK {key} {id}{kind}{delay}{priority}{reason}"),
        }
    }

    fn configure(&mut self, key: &str) -> String {
        let (dedupe, dead) = (self.option("DEDUPE", 80), self.option("DEADLEN", 3));
        let (reserved, ttr) = (self.option("MAXRESERVED", 6), self.option("TTR", 50));
        let rate = self.dice.pick(&["", " RATE 20 5", " RATE 0 0"]);
        let off = self.dice.pick(&[
            "",
            " MAXLEN 25",
            " MAXBYTES 90",
            " MAXLEN 0 MAXBYTES 0 ATTEMPTS 2",
        ]);
        let groups = self.dice.pick(&[
            "",
            " GROUPMAX 1",
            " GROUPFIFO 1",
            " GROUPFIFO 0 GROUPRATE 5 20",
            " GROUPMAX 0 GROUPRATE 0 0",
        ]);
        let done = self.dice.pick(&[
            "",
            " DONELEN 5",
            " DONETTL 30",
            " DONEBYTES 90 HISTORY 3",
            " DONELEN 9 DONETTL 60 DONEBYTES 0",
            " DONELEN 0 DONETTL 0 DONEBYTES 0 HISTORY 1",
        ]);
        format!("DQ.CFGSET {key}{dedupe}{dead}{reserved}{ttr}{rate}{off}{groups}{done}")
    }
}
