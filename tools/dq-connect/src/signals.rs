//! The signals that a service takes.

use std::io;

use tokio::signal::unix::{signal, Signal, SignalKind};

pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Wanted {
    End,
    /// SIGHUP: what was read is to be read again.
    ReadAgain,
}

impl Signals {
    /// From now on signals wait for `next`, and end nothing by themselves.
    pub fn new() -> io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    pub async fn next(&mut self) -> Wanted {
        tokio::select! {
            _ = self.terminate.recv() => Wanted::End,
            _ = self.interrupt.recv() => Wanted::End,
            _ = self.hang_up.recv() => Wanted::ReadAgain,
        }
    }
}
