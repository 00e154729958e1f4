//! What all requests share.

use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use dq_connect::target::Target;
use dq_serve::audit::Audit;
use dq_serve::throttle::Throttle;
use tokio::sync::{watch, Semaphore};

use super::counts::Counts;
use super::links::Links;
use super::tokens::Tokens;

/// So many bytes of bodies are in memory at a time, in KiB.
const BODIES_KIB: usize = 64 << 10;
/// So many requests wait for the end of a job, each with a connection to the server.
const WAITS: usize = 256;

pub struct Inbound {
    tokens: RwLock<Arc<Tokens>>,
    pub links: Links,
    pub throttle: Throttle,
    pub audit: Arc<Audit>,
    pub counts: Counts,
    pub bodies: Semaphore,
    pub waits: Semaphore,
    pub ending: watch::Receiver<bool>,
}

impl Inbound {
    /// `ending`: becomes true when the program is about to end.
    pub fn new(
        server: (Target, u32),
        tokens: Tokens,
        log: Option<&Path>,
        ending: watch::Receiver<bool>,
    ) -> Result<Arc<Inbound>, String> {
        Ok(Arc::new(Inbound {
            tokens: RwLock::new(Arc::new(tokens)),
            links: Links::new(server),
            throttle: Throttle::default(),
            audit: Arc::new(Audit::open("refused", log)?),
            counts: Counts::default(),
            bodies: Semaphore::new(BODIES_KIB),
            waits: Semaphore::new(WAITS),
            ending,
        }))
    }

    pub fn tokens(&self) -> Arc<Tokens> {
        Arc::clone(&self.tokens.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Counts a request that is refused here, and has it in the log.
    pub fn refused(&self, from: IpAddr, why: &'static str, token: Option<&str>) {
        self.counts.refused(why);
        self.audit.refused(from, why, token);
    }

    pub fn needs_tokens(&self) -> bool {
        self.tokens().are_needed()
    }

    pub fn set(&self, tokens: Tokens) {
        *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(tokens);
    }
}
