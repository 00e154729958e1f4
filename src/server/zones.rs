//! The time zones of this server, read when a rule first asks for one.

use super::api::log;
use super::clock;
use crate::queue::recurring::zone::Zone;
use crate::zones::Zones;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The least time between two log lines about unknown zones.
const QUIET_MS: u64 = 60_000;

thread_local! {
    static ZONES: RefCell<Option<Zones>> = const { RefCell::new(None) };
    static LOGGED_MS: Cell<u64> = const { Cell::new(0) };
}

fn with_zones<T>(use_them: impl FnOnce(&mut Zones) -> T) -> T {
    ZONES.with_borrow_mut(|zones| use_them(zones.get_or_insert_with(Zones::of_system)))
}

pub fn zone_of(name: &[u8]) -> Option<Rc<dyn Zone>> {
    let name = std::str::from_utf8(name).ok()?;
    with_zones(|zones| zones.get(name)).map(|zone| zone as Rc<dyn Zone>)
}

/// The time zone database: its version, and whether it is the system's.
pub fn database() -> (u64, bool) {
    with_zones(|zones| (zones.version(), zones.is_of_system()))
}

/// Logs an unknown zone. Rules with it continue with the offset of their last instant.
pub fn log_unknown(name: &[u8]) {
    let now_ms = clock::real().ms();
    if now_ms.abs_diff(LOGGED_MS.get()) >= QUIET_MS {
        LOGGED_MS.set(now_ms);
        let name = name.escape_ascii();
        let what = format!(
            "time zone '{name}' is unknown here: its jobs continue with the offset of their last instant"
        );
        log(c"warning", &what);
    }
}
