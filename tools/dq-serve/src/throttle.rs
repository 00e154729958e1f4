//! Limits guessing of passwords: one at a time from each address, and half a second after each wrong one, even if the
//! client hangs up before the answer.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tokio::sync::Mutex as AsyncMutex;

use crate::answer::plain;
use crate::locked::locked;

const AFTER_WRONG: Duration = Duration::from_millis(500);
/// So many of one address may wait for their turn.
const LINE: usize = 16;

#[derive(Default)]
pub struct Throttle {
    /// Addresses of which a password is checked, or waits.
    lines: Mutex<HashMap<IpAddr, Arc<AsyncMutex<()>>>>,
}

/// Too many passwords from one address wait already.
pub struct Full;

impl IntoResponse for Full {
    fn into_response(self) -> Response {
        plain(
            StatusCode::TOO_MANY_REQUESTS,
            "Too many passwords were tried; wait a moment.\n",
        )
    }
}

impl Throttle {
    pub async fn check<T>(
        &self,
        from: IpAddr,
        right: impl FnOnce() -> Option<T>,
    ) -> Result<Option<T>, Full> {
        let turn = self.line(from)?.lock_owned().await;
        if let Some(right) = right() {
            return Ok(Some(right));
        }
        let wait = tokio::spawn(async {
            tokio::time::sleep(AFTER_WRONG).await;
            drop(turn);
        });
        let _ = wait.await;
        Ok(None)
    }

    fn line(&self, from: IpAddr) -> Result<Arc<AsyncMutex<()>>, Full> {
        let mut lines = locked(&self.lines);
        lines.retain(|_, line| Arc::strong_count(line) > 1);
        let line = lines.entry(network(from)).or_default();
        match Arc::strong_count(line) > LINE {
            true => Err(Full),
            false => Ok(Arc::clone(line)),
        }
    }
}

/// A client with one IPv6 address has its whole /64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
        address => address,
    }
}
