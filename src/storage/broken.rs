//! Broken invariants: bugs, or memory that was overwritten. To continue with a default would hide
//! the damage and spread it. So the code that finds one panics; the border to the server catches
//! the panic, logs it and replies with an error.

use std::fmt::Display;

#[cold]
#[inline(never)]
fn broken(what: &str) -> ! {
    panic!("broken invariant: {what}")
}

/// Panics unless `holds`. Checked in every build: it costs no more than a default in its place would.
#[inline(always)]
pub fn must(holds: bool, what: &'static str) {
    if !holds {
        broken(what);
    }
}

/// The value of a result that must be `Ok`. `what` is formatted only if it is not; the error's text
/// follows it.
#[inline(always)]
pub fn must_fit<T, E: Display>(done: Result<T, E>, what: impl FnOnce() -> String) -> T {
    match done {
        Ok(value) => value,
        Err(why) => misfit(what, &why),
    }
}

#[cold]
#[inline(never)]
fn misfit(what: impl FnOnce() -> String, why: &dyn Display) -> ! {
    broken(&format!("{}: {why}", what()))
}

/// The value of an option that must be `Some`.
#[inline(always)]
pub fn there<T>(value: Option<T>, what: &'static str) -> T {
    match value {
        Some(value) => value,
        None => broken(what),
    }
}

/// A place where a build for tests can break an invariant once: see [`plant`].
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

    /// The next call that reaches this place panics there.
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

#[cfg(test)]
mod tests {
    use super::must_fit;

    #[test]
    #[should_panic(expected = "broken invariant: Added was decided: no room")]
    fn an_unfit_result_panics_with_both_texts() {
        assert_eq!(must_fit(Ok::<_, String>(5), || unreachable!()), 5);
        must_fit(Err::<(), _>("no room"), || "Added was decided".into());
    }
}
