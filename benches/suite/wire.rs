//! A connection that costs the client little: commands encoded in place, replies counted, not kept.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Appends a command.
pub fn encode(out: &mut Vec<u8>, arguments: &[&[u8]]) {
    length(out, b'*', arguments.len());
    for argument in arguments {
        length(out, b'$', argument.len());
        out.extend_from_slice(argument);
        out.extend_from_slice(b"\r\n");
    }
}

fn length(out: &mut Vec<u8>, kind: u8, length: usize) {
    out.push(kind);
    out.extend_from_slice(Decimal::of(length as u64).bytes());
    out.extend_from_slice(b"\r\n");
}

/// A number in decimal digits, without an allocation.
pub struct Decimal {
    digits: [u8; 20],
    first: usize,
}

impl Decimal {
    pub fn of(mut number: u64) -> Decimal {
        let mut decimal = Decimal {
            digits: [0; 20],
            first: 20,
        };
        loop {
            decimal.first -= 1;
            decimal.digits[decimal.first] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return decimal;
            }
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.digits[self.first..]
    }
}

pub struct Connection {
    stream: UnixStream,
    received: Vec<u8>,
    at: usize,
}

impl Connection {
    pub fn open(socket: &Path) -> Connection {
        Connection {
            stream: UnixStream::connect(socket).expect("the server listens"),
            received: Vec::new(),
            at: 0,
        }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream
            .write_all(bytes)
            .expect("the server takes the bytes");
    }

    pub fn send_command(&mut self, arguments: &[&[u8]]) {
        let mut bytes = Vec::new();
        encode(&mut bytes, arguments);
        self.send(&bytes);
    }

    /// Waits for one whole reply, as it stands on the wire. An error ends the measurement.
    pub fn receive(&mut self) -> &[u8] {
        let length = loop {
            match reply_length(&self.received[self.at..]) {
                Some(length) => break length,
                None => self.wait_for_more(),
            }
        };
        let start = self.at;
        self.at += length;
        &self.received[start..self.at]
    }

    /// Waits for so many replies, each of which must say that something was done.
    pub fn receive_done(&mut self, count: usize) {
        for _ in 0..count {
            let reply = self.receive();
            let is_idle = [&b"$-1"[..], b"*-1", b":0\r"].contains(&&reply[..3]);
            assert!(!is_idle, "nothing done: {}", reply.escape_ascii());
        }
    }

    pub fn call(&mut self, arguments: &[&[u8]]) -> &[u8] {
        self.send_command(arguments);
        self.receive()
    }

    fn wait_for_more(&mut self) {
        let mut chunk = [0; 1 << 16];
        self.received.drain(..self.at);
        self.at = 0;
        let count = self.stream.read(&mut chunk).expect("a reply");
        assert!(count > 0, "the server hung up");
        self.received.extend_from_slice(&chunk[..count]);
    }
}

/// The length of the first reply; None while it is not complete. Panics where it is an error.
fn reply_length(bytes: &[u8]) -> Option<usize> {
    let line = bytes.iter().position(|&byte| byte == b'\n')? + 1;
    let number = || -> i64 {
        let digits = std::str::from_utf8(&bytes[1..line - 2]).ok();
        let number = digits.and_then(|digits| digits.parse().ok());
        number.expect("a number")
    };
    match bytes[0] {
        b'$' => {
            let end = line + usize::try_from(number()).map_or(0, |length| length + 2);
            (end <= bytes.len()).then_some(end)
        }
        b'*' => (0..number()).try_fold(line, |at, _| Some(at + reply_length(&bytes[at..])?)),
        b'-' => panic!("{}", bytes[..line].escape_ascii()),
        _ => Some(line),
    }
}
