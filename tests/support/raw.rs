//! A bare socket: pipelines, partial packets, and replies exactly as they are sent.
//!
//! Unlike `redis::Value`, whose `Nil` is both, it tells the null array from the null bulk.

use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use super::{Socket, PATIENCE};

#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Simple(String),
    /// The whole line: `ERR syntax error`.
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    /// `$-1`
    NullBulk,
    /// `*-1`
    NullArray,
    Array(Vec<Reply>),
    /// RESP3's `_`
    Null,
    Boolean(bool),
    Double(String),
    Number(String),
    Verbatim(Vec<u8>),
    Map(Vec<(Reply, Reply)>),
    Set(Vec<Reply>),
    Push(Vec<Reply>),
}

impl Reply {
    pub fn bulk(text: impl AsRef<[u8]>) -> Reply {
        Reply::Bulk(text.as_ref().to_vec())
    }

    /// The first reply in `bytes` and its length; None if it is not complete. Panics if it is not RESP.
    pub fn parse(bytes: &[u8]) -> Option<(Reply, usize)> {
        let mut parser = Parser { bytes, at: 0 };
        let reply = parser.reply()?;
        Some((reply, parser.at))
    }
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Parser<'a> {
    fn reply(&mut self) -> Option<Reply> {
        let line = self.line()?;
        let (kind, rest) = line.split_at_checked(1).expect("a type byte");
        let text = || String::from_utf8_lossy(rest).into_owned();
        let number = || text().parse::<i64>().expect("a number");
        Some(match kind {
            b"+" => Reply::Simple(text()),
            b"-" => Reply::Error(text()),
            b":" => Reply::Integer(number()),
            b"," => Reply::Double(text()),
            b"(" => Reply::Number(text()),
            b"#" => Reply::Boolean(rest == b"t"),
            b"_" => Reply::Null,
            b"$" if number() < 0 => Reply::NullBulk,
            b"$" => Reply::Bulk(self.bulk(number() as usize)?),
            b"!" => Reply::Error(String::from_utf8_lossy(&self.bulk(number() as usize)?).into()),
            b"=" => Reply::Verbatim(self.bulk(number() as usize)?),
            b"*" if number() < 0 => Reply::NullArray,
            b"*" => Reply::Array(self.replies(number())?),
            b"~" => Reply::Set(self.replies(number())?),
            b">" => Reply::Push(self.replies(number())?),
            b"%" => Reply::Map(self.pairs(number())?),
            _ => panic!("no reply: {}", line.escape_ascii()),
        })
    }

    fn line(&mut self) -> Option<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|&byte| byte == b'\r')?;
        let after = rest.get(end + 1)?;
        assert_eq!(
            *after,
            b'\n',
            "a line without an end: {}",
            rest.escape_ascii()
        );
        self.at += end + 2;
        Some(&rest[..end])
    }

    fn bulk(&mut self, length: usize) -> Option<Vec<u8>> {
        let bytes = self.bytes[self.at..].get(..length + 2)?;
        assert!(
            bytes.ends_with(b"\r\n"),
            "a bulk string ends with a line break"
        );
        self.at += length + 2;
        Some(bytes[..length].to_vec())
    }

    fn replies(&mut self, count: i64) -> Option<Vec<Reply>> {
        (0..count).map(|_| self.reply()).collect()
    }

    fn pairs(&mut self, count: i64) -> Option<Vec<(Reply, Reply)>> {
        (0..count)
            .map(|_| Some((self.reply()?, self.reply()?)))
            .collect()
    }
}

/// Encodes a command in RESP, to be sent whole, in pieces, or with others.
pub fn encode(arguments: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// Finds out whether a reply is complete while its bytes arrive: it reads each byte once, however many parts there are.
struct Whole {
    at: usize,
    /// Parts that have not arrived yet.
    missing: usize,
}

impl Whole {
    const NONE: Whole = Whole { at: 0, missing: 1 };

    fn is_in(&mut self, bytes: &[u8]) -> bool {
        while self.missing > 0 {
            let mut parser = Parser { bytes, at: self.at };
            let Some(line) = parser.line() else {
                return false;
            };
            let count = || {
                let digits = std::str::from_utf8(&line[1..]).expect("digits");
                digits.parse::<i64>().expect("a number").max(0) as usize
            };
            let parts = match line[0] {
                b'$' | b'!' | b'=' if line[1] != b'-' => {
                    parser.at += count() + 2;
                    0
                }
                b'*' | b'~' | b'>' => count(),
                b'%' => 2 * count(),
                _ => 0,
            };
            if parser.at > bytes.len() {
                return false;
            }
            self.at = parser.at;
            self.missing = self.missing - 1 + parts;
        }
        true
    }
}

pub struct Raw {
    socket: Socket,
    received: Vec<u8>,
    whole: Whole,
    /// The beginning of what was sent last, for the message if no reply comes.
    sent: Vec<u8>,
}

impl Raw {
    pub fn new(socket: Socket) -> Raw {
        Raw {
            socket,
            received: Vec::new(),
            whole: Whole::NONE,
            sent: Vec::new(),
        }
    }

    #[track_caller]
    pub fn send(&mut self, bytes: &[u8]) {
        assert!(self.try_send(bytes), "the server takes the bytes");
    }

    /// Sends bytes; returns whether the server could take them.
    pub fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.sent = bytes[..bytes.len().min(200)].to_vec();
        self.socket.write_all(bytes).is_ok()
    }

    /// Sends one command and reads one reply.
    #[track_caller]
    pub fn call(&mut self, arguments: &[&[u8]]) -> Reply {
        self.send(&encode(arguments));
        self.read()
    }

    #[track_caller]
    pub fn read(&mut self) -> Reply {
        match self.try_read(PATIENCE) {
            Some(reply) => reply,
            None => {
                let begin = &self.received[..self.received.len().min(1000)];
                let (length, begin) = (self.received.len(), begin.escape_ascii());
                let sent = self.sent.escape_ascii();
                panic!("no reply within {PATIENCE:?} to {sent}; so far {length} bytes: {begin}")
            }
        }
    }

    /// None if no complete reply has arrived within `patience`. Panics if the server closes the connection.
    #[track_caller]
    pub fn try_read(&mut self, patience: Duration) -> Option<Reply> {
        let start = Instant::now();
        loop {
            if self.whole.is_in(&self.received) {
                self.whole = Whole::NONE;
                let (reply, length) = Reply::parse(&self.received).expect("a whole reply");
                self.received.drain(..length);
                return Some(reply);
            }
            let left = patience
                .checked_sub(start.elapsed())
                .filter(|left| !left.is_zero())?;
            // No bytes is not the end: the wait may have been interrupted.
            assert_ne!(self.receive(left), Some(0), "the server hung up");
        }
    }

    /// Waits until the server closes the connection, and returns what it sent before.
    #[track_caller]
    pub fn read_to_end(&mut self) -> Vec<u8> {
        loop {
            match self.receive(PATIENCE) {
                Some(0) => return std::mem::take(&mut self.received),
                Some(_) => {}
                None => panic!("the server has not hung up within {PATIENCE:?}"),
            }
        }
    }

    /// How many bytes arrived (0: the connection was closed), None after `patience`.
    fn receive(&mut self, patience: Duration) -> Option<usize> {
        let mut chunk = [0; 65536];
        self.socket.set_patience(patience);
        match self.socket.read(&mut chunk) {
            Ok(count) => {
                self.received.extend_from_slice(&chunk[..count]);
                Some(count)
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => None,
                ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Some(0),
                _ => panic!("reading from the server: {error}"),
            },
        }
    }
}
