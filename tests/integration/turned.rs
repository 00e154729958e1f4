//! Servers whose clock the tests turn: DQ.CLOCK, where the module was loaded with `test-clock yes`.

use crate::scene::Lines;
use crate::support::{Builder, Raw, Server};

pub fn builder() -> Builder {
    Server::builder().module_arguments("test-clock yes")
}

/// A client that holds the clock of a new server.
pub fn start() -> (Server, Raw) {
    let server = builder().start();
    let client = server.raw();
    (server, client)
}

pub fn clock(client: &mut Raw) -> i64 {
    client.int("DQ.CLOCK GET")
}
