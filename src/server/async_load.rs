//! A replica that loads its master's data beside its own (`repl-diskless-load swapdb`) and serves the old
//! ones meanwhile: both have their names and figures, and those of the new data count when the data do.

use super::agenda::{self, Deadlines};
use std::cell::RefCell;

thread_local! {
    /// Of the new data, while they are loaded.
    static INCOMING: RefCell<Option<Deadlines>> = const { RefCell::new(None) };
}

pub fn begin() {
    INCOMING.set(Some(Deadlines::new()));
}

pub fn is_under_way() -> bool {
    INCOMING.with_borrow(Option::is_some)
}

/// Notes down a queue that is loaded: as one of the new data, where such are on their way. Nothing is put right
/// behind a panic: a server that a module refuses a file's data ends itself.
pub fn noting(note: impl FnOnce()) {
    let Some(incoming) = INCOMING.take() else {
        return note();
    };
    let present = agenda::replace(incoming);
    note();
    INCOMING.set(Some(agenda::replace(present)));
}

/// The new data have taken the old ones' place.
pub fn complete() {
    if let Some(incoming) = INCOMING.take() {
        agenda::discard(agenda::replace(incoming));
    }
}

/// The old data stay.
pub fn abort() {
    INCOMING.take().into_iter().for_each(agenda::discard);
}
