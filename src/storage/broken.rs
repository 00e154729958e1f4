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
