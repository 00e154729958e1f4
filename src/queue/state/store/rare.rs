//! What few jobs have beside their 16 bytes: those that were delivered, above all.

use super::extra::Extra;
use crate::queue::job::Life;

#[derive(Clone, Debug)]
pub struct Rare {
    pub due: u64,
    // The fields of `Life`: as a whole it would take 8 bytes more beside the rest.
    expires: u64,
    token: u64,
    at: u64,
    lease_ms: u64,
    death: u64,
    attempts: u32,
    #[expect(dead_code, reason = "only its other values are looked at")]
    full: Full,
    /// The client that the job was delivered to last; 0 if that is not known here. Only this server knows it, so it is
    /// no part of the data.
    pub client: u64,
    pub extra: Option<Box<Extra>>,
}

/// Has one value: by the others the slab tells which of its entries are vacant, without a word of its own.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
enum Full {
    Full,
}

impl Rare {
    pub fn new(due: u64, life: Life, client: u64, extra: Option<Box<Extra>>) -> Self {
        let Life {
            expires,
            token,
            at,
            lease_ms,
            death,
            attempts,
        } = life;
        Rare {
            due,
            expires,
            token,
            at,
            lease_ms,
            death,
            attempts,
            full: Full::Full,
            client,
            extra,
        }
    }

    #[inline(always)]
    pub fn life(&self) -> Life {
        Life {
            expires: self.expires,
            token: self.token,
            at: self.at,
            lease_ms: self.lease_ms,
            death: self.death,
            attempts: self.attempts,
        }
    }

    #[inline(always)]
    pub fn set_life(&mut self, life: Life) {
        self.expires = life.expires;
        self.token = life.token;
        self.at = life.at;
        self.lease_ms = life.lease_ms;
        self.death = life.death;
        self.attempts = life.attempts;
    }
}
