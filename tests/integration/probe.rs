//! One server and all that a client can see of it: replies exactly as they are sent, keyspace events, touched WATCHes,
//! the digest, and what is replicated.
//!
//! Replies are compared as text: `'a'` is a bulk string, `1` an integer, `+OK` a simple string, `-ERR
//! ...` an error, `nil$` the null bulk, `nil*` the null array, `nil` RESP3's null, `[ 'a' 1 ]` an array,
//! `{ 'a' 1 }` a map. In what is expected, `?` stands for any one word, `...` for the
//! rest. In commands, `\xNN` is a byte
//! and `""` the empty argument.

use crate::support::{raw, wait_until, Builder, Raw, Reply, Server, PATIENCE};

pub struct Probe {
    pub server: Server,
    client: Raw,
    client3: Raw,
    watcher: Raw,
    events: Raw,
    /// A client that claims to be a replica: from then on what is replicated counts in the offset.
    follower: Option<Raw>,
    /// Whether `events` includes dq.ready, too, which comes with the timer, so at any time.
    pub ready_events: bool,
}

/// A PING that the server sends its replicas on its own; whatever is propagated is longer.
const PING_LEN: u64 = 14;

/// Everything that changes when a command does something.
#[derive(Debug)]
struct Traces {
    digest: String,
    offset: u64,
}

impl Traces {
    fn are_those_of(&self, before: &Traces) -> bool {
        self.digest == before.digest && self.offset <= before.offset + PING_LEN
    }
}

impl Probe {
    #[track_caller]
    pub fn start() -> Probe {
        Probe::of(Server::builder())
    }

    #[track_caller]
    pub fn of(builder: Builder) -> Probe {
        let server = builder
            .config("notify-keyspace-events", "Egd")
            .config("repl-ping-replica-period", 3600)
            .config("repl-timeout", 7200)
            .start();
        let mut client3 = server.raw();
        assert!(matches!(client3.call(&[b"HELLO", b"3"]), Reply::Map(_)));
        let mut events = server.raw();
        events.call(&[b"PSUBSCRIBE", b"__keyevent@*"]);
        Probe {
            client: server.raw(),
            client3,
            watcher: server.raw(),
            events,
            follower: None,
            ready_events: false,
            server,
        }
    }

    #[track_caller]
    pub fn run(&mut self, line: &str) -> Reply {
        call(&mut self.client, line)
    }

    /// The same in RESP3.
    #[track_caller]
    pub fn run3(&mut self, line: &str) -> Reply {
        call(&mut self.client3, line)
    }

    /// The reply's text.
    #[track_caller]
    pub fn ask(&mut self, line: &str) -> String {
        show(&self.run(line))
    }

    #[track_caller]
    pub fn int(&mut self, line: &str) -> i64 {
        match self.run(line) {
            Reply::Integer(number) => number,
            other => panic!("{line} -> {}", show(&other)),
        }
    }

    /// A reply's words, where it is a flat array: `DQ.POP`'s, say.
    #[track_caller]
    pub fn words(&mut self, line: &str) -> Vec<String> {
        match self.run(line) {
            Reply::Array(items) => items.iter().map(plain).collect(),
            other => panic!("{line} -> {}", show(&other)),
        }
    }

    /// The token of a delivery.
    #[track_caller]
    pub fn pop_token(&mut self, line: &str) -> u64 {
        let words = self.words(line);
        words[2].parse().expect("a token")
    }

    /// One field of DQ.GET, DQ.STATS or DQ.CFGGET.
    #[track_caller]
    pub fn field(&mut self, line: &str, name: &str) -> Reply {
        let Reply::Map(fields) = self.run3(line) else {
            panic!("{line} is no map");
        };
        let named = fields
            .into_iter()
            .find(|(key, _)| *key == Reply::bulk(name));
        named
            .unwrap_or_else(|| panic!("{line} has no field {name}"))
            .1
    }

    #[track_caller]
    pub fn field_text(&mut self, line: &str, name: &str) -> String {
        show(&self.field(line, name))
    }

    #[track_caller]
    pub fn field_int(&mut self, line: &str, name: &str) -> i64 {
        match self.field(line, name) {
            Reply::Integer(number) => number,
            other => panic!("{name} of {line} is {}", show(&other)),
        }
    }

    #[track_caller]
    pub fn says(&mut self, line: &str, expected: &str) {
        let reply = self.ask(line);
        assert!(
            fits(&reply, expected),
            "{line}\n  {reply}\nand not\n  {expected}"
        );
    }

    #[track_caller]
    pub fn says3(&mut self, line: &str, expected: &str) {
        let reply = show(&self.run3(line));
        assert!(
            fits(&reply, expected),
            "{line}\n  {reply}\nand not\n  {expected}"
        );
    }

    /// A dialog: lines `> command` (`3> command` in RESP3), each with the reply below it.
    #[track_caller]
    pub fn talk(&mut self, dialog: &str) {
        let lines = dialog
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty());
        let mut command = None;
        for line in lines {
            if let Some(said) = line.strip_prefix("> ") {
                assert_eq!(command, None, "no reply is expected of it");
                command = Some((2, said));
            } else if let Some(said) = line.strip_prefix("3> ") {
                assert_eq!(command, None, "no reply is expected of it");
                command = Some((3, said));
            } else {
                match command.take().expect("a command before a reply") {
                    (2, said) => self.says(said, line),
                    (_, said) => self.says3(said, line),
                }
            }
        }
        assert_eq!(command, None, "no reply is expected of it");
    }

    #[track_caller]
    pub fn until(&mut self, line: &str, expected: &str) {
        let mut reply = String::new();
        wait_until(format!("{line} -> {expected}"), PATIENCE, || {
            reply = self.ask(line);
            fits(&reply, expected)
        });
    }

    /// The server's clock.
    #[track_caller]
    pub fn time_us(&mut self) -> u64 {
        let words = self.words("TIME");
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        number(0) * 1_000_000 + number(1)
    }

    #[track_caller]
    pub fn time_ms(&mut self) -> u64 {
        self.time_us() / 1000
    }

    /// Waits until the server's clock is at that instant or later.
    #[track_caller]
    pub fn wait_until_ms(&mut self, instant: u64) {
        wait_until("the instant", PATIENCE, || self.time_ms() >= instant);
    }

    /// Prepares a job `a` of a queue `q` before one of its instants, and all that must exist by then; repeated with
    /// more time if the machine took longer.
    #[track_caller]
    pub fn in_time(&mut self, name: &str, ms: u64, set_up: impl Fn(&mut Probe, u64)) -> u64 {
        for times in [1, 4, 16, 64, 256, 1024] {
            self.run("DEL q");
            set_up(self, ms * times);
            let Reply::Map(fields) = self.run3("DQ.GET q a") else {
                continue;
            };
            let named = fields.iter().find(|(key, _)| *key == Reply::bulk(name));
            match named {
                Some((_, Reply::Integer(at))) if self.time_ms() < *at as u64 => return *at as u64,
                _ => {}
            }
        }
        panic!("{name} has always come too early");
    }

    /// Keyspace events since the last call, as `dq.add:q`.
    #[track_caller]
    pub fn events(&mut self) -> Vec<String> {
        // Earlier events come before the reply in the stream.
        self.events.send(&packed("PING mark"));
        let mut events = Vec::new();
        loop {
            let Reply::Array(message) = self.events.read() else {
                panic!("no message");
            };
            let words: Vec<String> = message.iter().map(plain).collect();
            match words.as_slice() {
                [_, _, channel, key] => {
                    let event = channel.split_once(':').expect("an event's channel").1;
                    let event_of_key = format!("{event}:{key}");
                    let is_ready = event == "dq.ready";
                    // Several jobs that become ready at one time may raise the event once or more often.
                    let again = events.last() == Some(&event_of_key);
                    if !is_ready || (self.ready_events && !again) {
                        events.push(event_of_key);
                    }
                }
                _ => return events,
            }
        }
    }

    /// The command raises exactly these events, of the key `q`, and touches a WATCH on it.
    #[track_caller]
    pub fn raises(&mut self, line: &str, expected: &str, events: &str) {
        self.events();
        self.watch();
        self.says(line, expected);
        assert!(self.watch_is_touched(), "{line} touches no WATCH");
        let expected: Vec<String> = events
            .split_whitespace()
            .map(|event| format!("{event}:q"))
            .collect();
        assert_eq!(self.events(), expected, "events of {line}");
    }

    /// Polls until these events, of the key `q`, have come since the last look; no others may.
    #[track_caller]
    pub fn until_events(&mut self, expected: &str) {
        let expected: Vec<String> = expected
            .split_whitespace()
            .map(|event| format!("{event}:q"))
            .collect();
        let mut seen = Vec::new();
        wait_until(format!("events {expected:?}"), PATIENCE, || {
            seen.append(&mut self.events());
            seen.len() >= expected.len()
        });
        assert_eq!(seen, expected);
    }

    #[track_caller]
    pub fn until_events_end_with(&mut self, expected: &str) {
        let mut last = None;
        wait_until(expected, PATIENCE, || {
            last = self.events().pop().or(last.take());
            last.as_deref() == Some(expected)
        });
    }

    pub fn watch(&mut self) {
        call(&mut self.watcher, "UNWATCH");
        call(&mut self.watcher, "WATCH q");
    }

    pub fn watch_is_touched(&mut self) -> bool {
        call(&mut self.watcher, "MULTI");
        call(&mut self.watcher, "PING");
        call(&mut self.watcher, "EXEC") == Reply::NullArray
    }

    /// Runs a script that has `now()`, the server's clock in ms, and `spin(instant)`, which waits for it
    /// busily, so that no timer runs. (TIME stands still in a script, on newer servers.)
    #[track_caller]
    pub fn eval(&mut self, command: &str, script: &str) -> String {
        self.run("DQ.ADD clock tick x AT 1000");
        let script = format!(
            "local function now() \
               local stats = redis.call('DQ.STATS', 'clock') \
               for i = 1, #stats, 2 do if stats[i] == 'oldest-ready-ms' then return 1000 + stats[i + 1] end end \
             end \
             local function spin(instant) while now() < instant do end end {script}"
        );
        let mut raw = self.server.raw();
        show(&raw.call(&[command.as_bytes(), script.as_bytes(), b"1", b"q"]))
    }

    fn traces(&mut self) -> Traces {
        if self.follower.is_none() {
            let mut follower = self.server.raw();
            follower.send(&raw::encode(&[b"SYNC"]));
            self.follower = Some(follower);
            // Until then a child writes the file that DEBUG RELOAD would read.
            wait_until("a follower", PATIENCE, || {
                let replica = self.server.connect().info("replication", "slave0");
                replica.is_some_and(|line| line.contains("state=online"))
            });
        }
        Traces {
            digest: self.server.digest(),
            offset: self
                .server
                .info("replication", "master_repl_offset")
                .parse()
                .expect("a number"),
        }
    }

    /// The command has this reply, and no effect: no event, no touched WATCH, the same digest, nothing replicated.
    #[track_caller]
    pub fn unseen(&mut self, line: &str, expected: &str) {
        let before = self.traces();
        self.events();
        self.watch();
        self.says(line, expected);
        let after = self.traces();
        assert!(
            after.are_those_of(&before),
            "{line} leaves {before:?}, {after:?}"
        );
        assert!(!self.watch_is_touched(), "{line} touches a WATCH");
        assert_eq!(self.events(), Vec::<String>::new(), "events of {line}");
    }

    /// The reply, and whether the command has had effects: all of them, or none.
    #[track_caller]
    pub fn traced(&mut self, line: &str) -> (String, bool) {
        let before = self.traces();
        self.events();
        self.watch();
        let reply = self.ask(line);
        let after = self.traces();
        let touched = self.watch_is_touched();
        let events = self.events();
        let sent = after.offset > before.offset + PING_LEN;
        assert_eq!(sent, touched, "{line} -> {reply}: sent, WATCH touched");
        assert!(sent || events.is_empty(), "{line} -> {reply}: {events:?}");
        assert!(
            sent || after.digest == before.digest,
            "{line} -> {reply}: another digest"
        );
        (reply, sent)
    }

    /// Each line is a command and, after ` -> `, its reply; none has an effect.
    #[track_caller]
    pub fn all_unseen(&mut self, lines: &str) {
        for (line, expected) in pairs(lines) {
            self.unseen(line, expected);
        }
    }

    /// The command has this reply, and an effect that all see: WATCH, digest, replication.
    #[track_caller]
    pub fn seen(&mut self, line: &str, expected: &str) {
        let before = self.traces();
        self.watch();
        self.says(line, expected);
        let after = self.traces();
        assert_ne!(after.digest, before.digest, "the digest after {line}");
        assert!(
            after.offset > before.offset + PING_LEN,
            "the offset after {line}"
        );
        assert!(self.watch_is_touched(), "{line} touches no WATCH");
    }
}

/// `command -> reply`, a line each.
pub fn pairs(lines: &str) -> impl Iterator<Item = (&str, &str)> {
    lines
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| line.split_once(" -> ").expect("command -> reply"))
}

#[track_caller]
fn call(connection: &mut Raw, line: &str) -> Reply {
    let arguments: Vec<Vec<u8>> = line.split_whitespace().map(unescaped).collect();
    let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
    connection.call(&arguments)
}

pub fn packed(line: &str) -> Vec<u8> {
    let arguments: Vec<Vec<u8>> = line.split_whitespace().map(unescaped).collect();
    let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
    raw::encode(&arguments)
}

fn unescaped(word: &str) -> Vec<u8> {
    if word == "\"\"" {
        return Vec::new();
    }
    let mut parts = word.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (hex, rest) = part.split_at(2);
        bytes.push(u8::from_str_radix(hex, 16).expect("two hex digits"));
        bytes.extend_from_slice(rest.as_bytes());
    }
    bytes
}

/// Word by word, `?` being any, `...` all that follow.
pub fn fits(reply: &str, expected: &str) -> bool {
    let (mut reply, mut expected) = (reply.split(' '), expected.split(' '));
    loop {
        match (reply.next(), expected.next()) {
            (None, None) => return true,
            (_, Some("...")) => return true,
            (Some(_), Some("?")) => {}
            (Some(word), Some(wanted)) if word == wanted => {}
            _ => return false,
        }
    }
}

pub fn show(reply: &Reply) -> String {
    match reply {
        Reply::Simple(text) => format!("+{text}"),
        Reply::Error(text) => format!("-{text}"),
        Reply::Integer(number) => number.to_string(),
        Reply::Bulk(bytes) => format!("'{}'", escaped(bytes)),
        Reply::NullBulk => "nil$".into(),
        Reply::NullArray => "nil*".into(),
        Reply::Null => "nil".into(),
        Reply::Array(items) => list("[", items.iter(), "]"),
        Reply::Map(fields) => list("{", fields.iter().flat_map(|(k, v)| [k, v]), "}"),
        other => format!("{other:?}"),
    }
}

fn list<'a>(open: &str, items: impl Iterator<Item = &'a Reply>, close: &str) -> String {
    let mut text = open.to_owned();
    for item in items {
        text.push(' ');
        text.push_str(&show(item));
    }
    format!("{text} {close}")
}

fn escaped(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string().replace(' ', "\\x20")
}

/// What DQ.GET shows, as text, but who works on the job: that is no data.
pub fn data(reply: &Reply) -> String {
    let shown = show(reply);
    match shown.split_once("'client' ") {
        Some((before, after)) => {
            let (_, after) = after.split_once(' ').expect("more fields");
            format!("{before}{after}")
        }
        None => shown,
    }
}

/// A string or a number without its marks.
pub fn plain(reply: &Reply) -> String {
    match reply {
        Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Reply::Simple(text) => text.clone(),
        other => show(other),
    }
}
