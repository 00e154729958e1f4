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

/// Notes down a queue that is loaded: as one of the new data, where such are on their way.
pub fn noting(note: impl FnOnce()) {
    let _present = INCOMING.take().map(|incoming| Present {
        deadlines: agenda::replace(incoming),
    });
    note();
}

/// The old data's names, while the agenda has those of the new: they change places again, also where a panic
/// unwinds.
struct Present {
    deadlines: Deadlines,
}

impl Drop for Present {
    fn drop(&mut self) {
        let present = std::mem::replace(&mut self.deadlines, Deadlines::new());
        INCOMING.set(Some(agenda::replace(present)));
    }
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
