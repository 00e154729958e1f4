//! AFTER n id [id ...] [ONDEAD WAIT | RUN | DIE] | AFTER GROUP name

use super::parse::{out_of_range, positive, syntax_error, Options, Words};
use crate::queue::after::{For, OnDead, AFTER_MAX};
use crate::server::api::Refusal;
use crate::storage::few::Few;
use serde_bytes::Bytes;

/// What AFTER names.
pub enum Given<'a> {
    Ids(Few<&'a Bytes>),
    Group(&'a [u8]),
}

impl<'a, W: Words> Options<'a, W> {
    /// Reads what follows AFTER.
    pub fn after(&mut self) -> Result<Given<'a>, Refusal> {
        let first = self.value()?;
        if first.eq_ignore_ascii_case(b"GROUP") {
            return Ok(Given::Group(self.value()?));
        }
        let count = positive(first)?;
        if count > AFTER_MAX as u64 {
            return Err(out_of_range());
        }
        let mut id = || self.value().map(Bytes::new);
        Ok(Given::Ids(match count {
            1 => Few::One(id()?),
            _ => Few::from((0..count).map(|_| id()).collect::<Result<Vec<_>, _>>()?),
        }))
    }
}

pub fn on_dead_of(word: &[u8]) -> Result<OnDead, Refusal> {
    let named = |it: &OnDead| word.eq_ignore_ascii_case(it.name().as_bytes());
    OnDead::ALL
        .into_iter()
        .find(named)
        .ok_or_else(|| syntax_error("ONDEAD is WAIT, RUN or DIE"))
}

/// Combines AFTER and ONDEAD, which needs ids.
pub fn until<'a>(
    after: Option<Given<'a>>,
    on_dead: Option<OnDead>,
) -> Result<Option<For<'a>>, Refusal> {
    match (after, on_dead) {
        (None, None) => Ok(None),
        (Some(Given::Ids(ids)), on_dead) => Ok(Some(For::Jobs(ids, on_dead.unwrap_or_default()))),
        (Some(Given::Group(name)), None) => Ok(Some(For::Group(name))),
        (None | Some(Given::Group(_)), Some(_)) => {
            Err(Refusal("ERR ONDEAD needs AFTER with ids".into()))
        }
    }
}
