//! A server that is wrong: a proxy before a right one, which falsifies one thing.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;

#[derive(Clone, Copy, PartialEq)]
pub enum Lie {
    /// In what the clients say: the first, in capitals or not, is replaced by the second, which is as long.
    Asked(&'static [u8], &'static [u8]),
    /// In what the server says.
    Told(&'static [u8], &'static [u8]),
    /// Whose connection is lost once does not get another one, nor does anybody else.
    NoWayBack,
    /// For the checks of the proxy itself.
    #[allow(dead_code)]
    None,
}

pub struct Liar {
    port: u16,
    closed: Arc<AtomicBool>,
}

impl Liar {
    /// Listens on a port of its own for as long as it lives.
    pub fn before(server: u16, lie: Lie) -> Liar {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let closed = Arc::new(AtomicBool::new(false));
        let gone = closed.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if gone.load(Ordering::SeqCst) {
                    continue; // and so it is closed
                }
                if let Ok(server) = TcpStream::connect(("127.0.0.1", server)) {
                    carry(client, server, lie, &gone);
                }
            }
        });
        Liar { port, closed }
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::SeqCst);
    }
}

fn carry(client: TcpStream, server: TcpStream, lie: Lie, gone: &Arc<AtomicBool>) {
    let (asked, told) = match lie {
        Lie::Asked(what, with) => (Some((what, with)), None),
        Lie::Told(what, with) => (None, Some((what, with))),
        Lie::NoWayBack | Lie::None => (None, None),
    };
    let twin = |stream: &TcpStream| stream.try_clone().expect("a socket can be duplicated");
    let (from_client, to_server) = (twin(&client), twin(&server));
    thread::spawn(move || pass(from_client, to_server, asked));
    let gone = gone.clone();
    thread::spawn(move || {
        pass(server, client, told);
        if lie == Lie::NoWayBack {
            gone.store(true, Ordering::SeqCst);
        }
    });
}

/// Passes on what comes until one side ends, then ends the other.
fn pass(mut from: TcpStream, mut to: TcpStream, lie: Option<(&[u8], &[u8])>) {
    let _ = to.set_nodelay(true);
    let mut chunk = [0; 65536];
    let mut held = Vec::new();
    loop {
        match from.read(&mut chunk) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => break,
            Ok(count) => held.extend_from_slice(&chunk[..count]),
        }
        let ready = match lie {
            Some((what, with)) => falsify(&mut held, what, with),
            None => held.len(),
        };
        if to.write_all(&held[..ready]).is_err() {
            break;
        }
        held.drain(..ready);
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// Returns how many bytes may be passed on: what could be the beginning of `what` has to wait for more.
fn falsify(bytes: &mut [u8], what: &[u8], with: &[u8]) -> usize {
    assert_eq!(what.len(), with.len(), "lengths stay true");
    let mut at = 0;
    let position = |rest: &[u8]| {
        rest.windows(what.len())
            .position(|it| it.eq_ignore_ascii_case(what))
    };
    while let Some(found) = position(&bytes[at..]) {
        at += found + what.len();
        bytes[at - what.len()..at].copy_from_slice(with);
    }
    let longest = (what.len() - 1).min(bytes.len() - at);
    let begun = (1..=longest)
        .rev()
        .find(|&length| bytes[bytes.len() - length..].eq_ignore_ascii_case(&what[..length]));
    bytes.len() - begun.unwrap_or(0)
}

#[test]
fn falsifies_wherever_the_stream_is_cut() {
    let whole = b"+begin\r\n$5\r\nstate\r\n$5\r\nstale\r\n:1\r\nst";
    for cut in 0..whole.len() {
        let (mut held, mut passed) = (Vec::new(), Vec::new());
        for part in [&whole[..cut], &whole[cut..], b"op"] {
            held.extend_from_slice(part);
            let ready = falsify(&mut held, b"state", b"statx");
            passed.extend(held.drain(..ready));
        }
        let expected = b"+begin\r\n$5\r\nstatx\r\n$5\r\nstale\r\n:1\r\nstop";
        assert_eq!(passed, expected, "cut at {cut}");
    }
}
