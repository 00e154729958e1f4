//! What must hold, and does not: a bug, or memory that somebody else wrote to. Going on with a default would
//! make it worse and keep silent about it, so it stops whatever came upon it: a panic, which is caught at the
//! border to the server, logged and answered with an error.

#[cold]
#[inline(never)]
fn broken(what: &str) -> ! {
    panic!("broken invariant: {what}")
}

/// Also where nobody tests: as cheap as the default that it stands for.
#[inline(always)]
pub fn must(holds: bool, what: &'static str) {
    if !holds {
        broken(what);
    }
}

/// What must be there.
#[inline(always)]
pub fn there<T>(value: Option<T>, what: &'static str) -> T {
    match value {
        Some(value) => value,
        None => broken(what),
    }
}

/// A place that a build for tests can break once: see [`plant`].
#[cfg(all(feature = "module", not(feature = "breakable")))]
#[inline(always)]
pub fn breaking_point(_: &str) {}

#[cfg(feature = "breakable")]
pub use planted::{breaking_point, is_planted, plant};

#[cfg(feature = "breakable")]
mod planted {
    use std::cell::RefCell;

    thread_local! {
        static PLANTED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }

    /// What comes to that place next is stopped there.
    pub fn plant(place: &[u8]) {
        PLANTED.set(place.to_vec());
    }

    pub fn is_planted(place: &str) -> bool {
        PLANTED.with_borrow(|planted| planted == place.as_bytes())
    }

    pub fn breaking_point(place: &str) {
        if is_planted(place) {
            PLANTED.take();
            super::broken(place);
        }
    }
}
