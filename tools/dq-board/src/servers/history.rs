//! The history of queues, by minute for a day and by hour for a year: in a file, or only in memory.

use std::cell::Cell;
use std::collections::HashMap;
use std::io::{ErrorKind, Read};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Once;

use dq_watch::model::row::Row;
use dq_watch::model::QueueKey;
use redb::backends::InMemoryBackend;
use redb::{Database, ReadTransaction, ReadableTable, TableDefinition, WriteTransaction};

use crate::core::alerts::{Alert, State, Totals};
use crate::core::history::{Parts, Slot, Told, HOUR_MS, MINUTE_MS};

type Numbers = (u64, u64, u64, u64, u64, u64);
type Slots = TableDefinition<'static, (&'static [u8], u32), Numbers>;
/// Slots during which the board ran.
type Known = TableDefinition<'static, u32, ()>;

/// Length of a slot, how many are kept, and where.
struct Ring {
    long_ms: i64,
    kept: u32,
    slots: Slots,
    known: Known,
}

const RINGS: [Ring; 2] = [
    Ring {
        long_ms: MINUTE_MS,
        kept: 1441,
        slots: TableDefinition::new("minutes"),
        known: TableDefinition::new("known minutes"),
    },
    Ring {
        long_ms: HOUR_MS,
        kept: 366 * 24,
        slots: TableDefinition::new("hours"),
        known: TableDefinition::new("known hours"),
    },
];

/// Alerts by what they are about: whether the webhook accepted the last one, and that alert as JSON.
const ALERTS: TableDefinition<'static, &str, (bool, &str)> = TableDefinition::new("alerts");

/// How the file is opened, at the start and again when writing has failed.
type Open = Box<dyn Fn() -> Result<Database, String> + Send>;

/// How many jobs of each queue had died, and how many occurrences were missed, when that was last read for alerts.
const TOTALS: TableDefinition<'static, &[u8], (u64, u64)> = TableDefinition::new("totals");

/// Whose queues had all been seen when their totals were last kept.
const SEEN: TableDefinition<'static, (), &str> = TableDefinition::new("seen");

pub struct History {
    /// None: it could not be written, and is opened again.
    file: Option<Database>,
    open: Open,
    path: Option<PathBuf>,
    /// What each queue reported when it was last recorded.
    told: HashMap<QueueKey, Told>,
    minute: u32,
    trimmed: u32,
}

type Done<T> = Result<T, Box<dyn std::error::Error>>;

const BROKEN: &str = "the file is damaged";
const CLOSED: &str = "the file cannot be written, and is opened again";

/// Opens the file. What is left of a damaged one is put aside, and a new one begins.
fn open_file(path: &Path) -> Result<Database, String> {
    let said = |error: &dyn std::fmt::Display| format!("--store {}: {error}", path.display());
    match checked(path) {
        Ok(file) => Ok(file),
        Err(Damage::Other(error)) => Err(said(&error)),
        Err(Damage::Broken(error)) => {
            put_aside(path, &error).map_err(|error| said(&error))?;
            Database::create(path).map_err(|error| said(&error))
        }
    }
}

fn put_aside(path: &Path, why: &str) -> std::io::Result<()> {
    let aside = PathBuf::from(format!("{}.damaged", path.display()));
    std::fs::rename(path, &aside)?;
    eprintln!(
        "dq board: --store {}: the file is damaged ({why}); it is now {}, and a new history begins",
        path.display(),
        aside.display()
    );
    Ok(())
}

enum Damage {
    /// It was a history once.
    Broken(String),
    Other(String),
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// The library panics at some damaged files: that is told as an error, and by nothing else.
fn quietly<T>(work: impl FnOnce() -> T) -> std::thread::Result<T> {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |about| {
            if !QUIET.get() {
                before(about);
            }
        }));
    });
    let outer = QUIET.replace(true);
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    QUIET.set(outer);
    done
}

/// The library's error is large.
#[allow(clippy::result_large_err)]
fn checked(path: &Path) -> Result<Database, Damage> {
    let opened = quietly(|| {
        let mut file = Database::create(path)?;
        // Otherwise what is damaged shows only when it is used.
        file.check_integrity()?;
        Ok::<_, redb::Error>(file)
    });
    // Also of a file that could not even be begun.
    let is_ours = || {
        let mut begin = Vec::new();
        let read = std::fs::File::open(path).and_then(|file| file.take(4).read_to_end(&mut begin));
        read.is_ok_and(|length| length > 0) && b"redb".starts_with(&begin)
    };
    match opened {
        Ok(Ok(file)) => Ok(file),
        Err(_) if is_ours() => Err(Damage::Broken("it ends too early".to_owned())),
        Err(_) => Err(Damage::Other("it cannot be read".to_owned())),
        Ok(Err(error @ redb::Error::Corrupted(_))) if is_ours() => {
            Err(Damage::Broken(error.to_string()))
        }
        Ok(Err(redb::Error::Io(error)))
            if is_ours()
                && matches!(
                    error.kind(),
                    ErrorKind::UnexpectedEof | ErrorKind::InvalidData
                ) =>
        {
            Err(Damage::Broken(error.to_string()))
        }
        Ok(Err(redb::Error::Io(error))) if error.kind() == ErrorKind::InvalidData => Err(
            Damage::Other("it is not the history of a board, and is left alone".to_owned()),
        ),
        Ok(Err(error)) => Err(Damage::Other(error.to_string())),
    }
}

fn number(at_ms: i64, long_ms: i64) -> u32 {
    at_ms.div_euclid(long_ms).clamp(0, i64::from(u32::MAX)) as u32
}

fn name(key: &QueueKey) -> Vec<u8> {
    [&key.db.to_be_bytes()[..], &key.name].concat()
}

fn key_of(name: &[u8]) -> Option<QueueKey> {
    let (db, name) = name.split_first_chunk::<4>()?;
    Some(QueueKey::new(u32::from_be_bytes(*db), name))
}

impl History {
    pub fn open(path: Option<&Path>, now_ms: i64) -> Result<History, String> {
        let path = path.map(Path::to_owned);
        let open: Open = match path.clone() {
            Some(path) => Box::new(move || open_file(&path)),
            None => Box::new(|| {
                let file = Database::builder().create_with_backend(InMemoryBackend::new());
                file.map_err(|error| error.to_string())
            }),
        };
        History::of(open, path, now_ms)
    }

    fn of(open: Open, path: Option<PathBuf>, now_ms: i64) -> Result<History, String> {
        let mut history = History {
            file: Some(open()?),
            open,
            path,
            told: HashMap::new(),
            minute: number(now_ms, MINUTE_MS),
            trimmed: 0,
        };
        let mut begin = || history.change(|history| history.write(&[], now_ms));
        // Where the first change shows the damage, the second one is in a new file.
        let begun = begin().or_else(|_| begin());
        begun.map_err(|error| format!("--store: {error}"))?;
        Ok(history)
    }

    /// Changes the file. A damage that shows only now puts it aside: the next change begins a new one.
    fn change<T>(&mut self, work: impl FnOnce(&mut History) -> Done<T>) -> Result<T, String> {
        let done = quietly(|| work(self)).unwrap_or_else(|_| {
            let file = self.file.take();
            let _ = quietly(|| drop(file));
            if let Some(path) = &self.path {
                put_aside(path, "it cannot be changed")?;
            }
            Err(BROKEN.into())
        });
        done.map_err(|error| error.to_string())
    }

    fn read<T>(&self, work: impl FnOnce(&History) -> Done<T>) -> Result<T, String> {
        let done = quietly(|| work(self)).unwrap_or_else(|_| Err(BROKEN.into()));
        done.map_err(|error| error.to_string())
    }

    fn begin_read(&self) -> Done<ReadTransaction> {
        Ok(self.file.as_ref().ok_or(CLOSED)?.begin_read()?)
    }

    /// Records what the last minutes brought, once a minute is over. Of a queue that the board did not see begin only its
    /// totals are noted: what they grew by is not known.
    pub fn tick<'a>(
        &mut self,
        rows: impl Iterator<Item = &'a Row>,
        now_ms: i64,
    ) -> Result<(), String> {
        if number(now_ms, MINUTE_MS) != self.minute {
            return self.write_down(rows, now_ms);
        }
        for row in rows.filter(|row| row.perhaps_since.is_none()) {
            if let (Some(stats), false) = (&row.stats, self.told.contains_key(&row.key)) {
                let first = first_told(row).unwrap_or((stats.totals, stats.lateness.clone()));
                self.told.insert(row.key.clone(), first);
            }
        }
        Ok(())
    }

    /// What was done since the last call belongs to the minute that began with that call.
    pub fn write_down<'a>(
        &mut self,
        rows: impl Iterator<Item = &'a Row>,
        now_ms: i64,
    ) -> Result<(), String> {
        let (mut grown, mut told) = (Vec::new(), Vec::new());
        for row in rows.filter(|row| row.perhaps_since.is_none()) {
            let Some(stats) = &row.stats else { continue };
            let now = (stats.totals, stats.lateness.clone());
            let first = first_told(row);
            if let Some(old) = self.told.get(&row.key).or(first.as_ref()) {
                let slot = Slot::between(old, stats);
                if !slot.is_empty() {
                    grown.push((name(&row.key), slot));
                }
            }
            told.push((row.key.clone(), now));
        }
        let at_ms = i64::from(self.minute) * MINUTE_MS;
        self.minute = number(now_ms, MINUTE_MS);
        // What could not be written belongs to the next minute that can.
        self.change(|history| history.write(&grown, at_ms))?;
        self.told.extend(told);
        Ok(())
    }

    fn write(&mut self, grown: &[(Vec<u8>, Slot)], at_ms: i64) -> Done<()> {
        let hour = number(at_ms, HOUR_MS);
        let trims = self.trimmed != hour;
        let write = self.begin_write()?;
        write.open_table(ALERTS)?;
        write.open_table(TOTALS)?;
        write.open_table(SEEN)?;
        for ring in &RINGS {
            let place = number(at_ms, ring.long_ms);
            write.open_table(ring.known)?.insert(place, ())?;
            let mut slots = write.open_table(ring.slots)?;
            for (name, slot) in grown {
                let key = (name.as_slice(), place);
                let old = slots.get(key)?.map(|old| slot_of(old.value()));
                slots.insert(key, numbers(old.unwrap_or_default().and(*slot)))?;
            }
            if trims {
                let oldest = place.saturating_sub(ring.kept);
                slots.retain(|(_, place), _| place >= oldest)?;
                write
                    .open_table(ring.known)?
                    .retain(|place, ()| place >= oldest)?;
            }
        }
        self.committed(write)?;
        self.trimmed = hour;
        Ok(())
    }

    /// After a failure the file is opened again: until then it would refuse to be written.
    fn begin_write(&mut self) -> Done<WriteTransaction> {
        if self.file.is_none() {
            self.file = Some((self.open)()?);
        }
        let begun = self.file.as_ref().ok_or(CLOSED)?.begin_write();
        begun.map_err(|error| self.failed(error))
    }

    fn committed(&mut self, write: WriteTransaction) -> Done<()> {
        write.commit().map_err(|error| self.failed(error))
    }

    fn failed(
        &mut self,
        error: impl Into<Box<dyn std::error::Error>>,
    ) -> Box<dyn std::error::Error> {
        self.file = None;
        error.into()
    }

    /// Forgets what the servers had reported: the totals of others are no growth of these.
    pub fn forget_servers(&mut self) -> Result<(), String> {
        self.told.clear();
        self.forget_totals()
    }

    /// Forgets the totals by which alerts count.
    pub fn forget_totals(&mut self) -> Result<(), String> {
        self.change(|history| {
            let write = history.begin_write()?;
            write.delete_table(TOTALS)?;
            write.delete_table(SEEN)?;
            write.open_table(TOTALS)?;
            write.open_table(SEEN)?;
            history.committed(write)
        })
    }

    /// Keeps alerts that are on their way to the webhook.
    pub fn keep_alerts(&mut self, alerts: &[Alert]) -> Result<(), String> {
        self.change_alerts(alerts, |alert, _| Some((false, alert.clone())))
    }

    /// Records that the webhook accepted these alerts. Resolved ones are then removed.
    pub fn alerts_taken(&mut self, alerts: &[Alert]) -> Result<(), String> {
        self.change_alerts(alerts, |alert, kept| match kept {
            Some((_, kept)) if kept == *alert && alert.state == State::Resolved => None,
            Some((_, kept)) if kept == *alert => Some((true, kept)),
            // A newer alert is on its way.
            other => other,
        })
    }

    fn change_alerts(
        &mut self,
        alerts: &[Alert],
        change: impl Fn(&Alert, Option<(bool, Alert)>) -> Option<(bool, Alert)>,
    ) -> Result<(), String> {
        self.change(|history| {
            let write = history.begin_write()?;
            {
                let mut table = write.open_table(ALERTS)?;
                for alert in alerts {
                    let about = alert.about();
                    let kept = table.get(about.as_str())?.map(|it| read_alert(it.value()));
                    match change(alert, kept.transpose()?) {
                        None => drop(table.remove(about.as_str())?),
                        Some((taken, alert)) => {
                            let text = serde_json::to_string(&alert)?;
                            table.insert(about.as_str(), (taken, text.as_str()))?;
                        }
                    }
                }
            }
            history.committed(write)
        })
    }

    /// Keeps the totals by which alerts count, for a board that starts again; and whose queues these are, if they are
    /// all that there are.
    pub fn keep_totals(&mut self, changed: &[Totals], seen: Option<&str>) -> Result<(), String> {
        self.change(|history| {
            let write = history.begin_write()?;
            {
                let mut table = write.open_table(TOTALS)?;
                for (key, [died, missed]) in changed {
                    table.insert(name(key).as_slice(), (*died, *missed))?;
                }
                if let Some(seen) = seen {
                    write.open_table(SEEN)?.insert((), seen)?;
                }
            }
            history.committed(write)
        })
    }

    /// Whose queues had all been seen when their totals were last kept.
    pub fn seen(&self) -> Result<Option<String>, String> {
        self.read(|history| {
            let table = history.begin_read()?.open_table(SEEN)?;
            Ok(table.get(())?.map(|seen| seen.value().to_owned()))
        })
    }

    pub fn totals(&self) -> Result<Vec<Totals>, String> {
        self.read(|history| {
            let table = history.begin_read()?.open_table(TOTALS)?;
            let all = table.iter()?.map(|it| {
                let (name, totals) = it?;
                let (died, missed) = totals.value();
                Ok(key_of(name.value()).map(|key| (key, [died, missed])))
            });
            let all: Result<Vec<Option<Totals>>, redb::StorageError> = all.collect();
            Ok(all?.into_iter().flatten().collect())
        })
    }

    /// All alerts that are kept, and whether the webhook accepted them.
    pub fn alerts(&self) -> Result<Vec<(bool, Alert)>, String> {
        self.read(|history| {
            let table = history.begin_read()?.open_table(ALERTS)?;
            let all = table.iter()?;
            all.map(|it| Ok(read_alert(it?.1.value())?)).collect()
        })
    }

    /// A queue's history in these parts, including what is not recorded yet.
    pub fn parts(
        &self,
        row: Option<&Row>,
        key: &QueueKey,
        now_ms: i64,
        mut parts: Parts,
    ) -> Result<Parts, String> {
        self.read(|history| history.add_slots(&mut parts, key, now_ms))?;
        let begun = i64::from(self.minute) * MINUTE_MS;
        let long_ms = (now_ms - begun).max(1);
        parts.knows(begun, long_ms);
        let stats = row.and_then(|row| row.stats.as_ref());
        if let (Some(stats), Some(old)) = (stats, self.told.get(key)) {
            parts.add(begun, long_ms, Slot::between(old, stats));
        }
        Ok(parts)
    }

    fn add_slots(&self, parts: &mut Parts, key: &QueueKey, now_ms: i64) -> Done<()> {
        let (from_ms, to_ms) = parts.range_ms();
        let to_ms = to_ms.min(now_ms);
        let reaches = |ring: &&Ring| now_ms - from_ms < ring.long_ms * i64::from(ring.kept);
        let ring = RINGS.iter().find(reaches).unwrap_or(&RINGS[1]);
        let (first, last) = (number(from_ms, ring.long_ms), number(to_ms, ring.long_ms));
        let read = self.begin_read()?;
        let name = name(key);
        let slots = read.open_table(ring.slots)?;
        for slot in slots.range((name.as_slice(), first)..=(name.as_slice(), last))? {
            let (place, slot) = slot?;
            let at_ms = i64::from(place.value().1) * ring.long_ms;
            // Of the current hour only a part is over.
            let long_ms = ring.long_ms.min((now_ms - at_ms).max(1));
            parts.add(at_ms, long_ms, slot_of(slot.value()));
        }
        for place in read.open_table(ring.known)?.range(first..=last)? {
            let at_ms = i64::from(place?.0.value()) * ring.long_ms;
            parts.knows(at_ms, ring.long_ms);
        }
        Ok(())
    }
}

/// What a queue had done when the board saw that it was not there yet.
fn first_told(row: &Row) -> Option<Told> {
    row.new_since.map(|_| Told::default())
}

fn read_alert((taken, text): (bool, &str)) -> serde_json::Result<(bool, Alert)> {
    Ok((taken, serde_json::from_str(text)?))
}

fn numbers(slot: Slot) -> Numbers {
    let Slot {
        added,
        delivered,
        acked,
        failed,
        died,
        late_us,
    } = slot;
    (added, delivered, acked, failed, died, late_us)
}

fn slot_of((added, delivered, acked, failed, died, late_us): Numbers) -> Slot {
    Slot {
        added,
        delivered,
        acked,
        failed,
        died,
        late_us,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dq_watch::model::stats::{Stats, DELIVERED};
    use std::time::{Duration, Instant};

    fn row(name: &str, delivered: u64) -> Row {
        let mut row = Row::new(QueueKey::new(0, name), "node");
        let mut stats = Stats::default();
        stats.totals[DELIVERED] = delivered;
        row.read(stats, Instant::now(), Duration::from_secs(1));
        row
    }

    fn sums(history: &History, now_ms: i64, span_ms: i64) -> (f64, usize) {
        let key = QueueKey::new(0, "q");
        let parts = Parts::new(now_ms - span_ms, span_ms / 60, 60);
        let parts = history.parts(None, &key, now_ms, parts).unwrap();
        let known = parts.known.iter().filter(|it| **it).count();
        (parts.delivered.iter().sum::<f64>().round(), known)
    }

    #[test]
    fn it_is_there_after_a_restart_and_forgets_what_is_old() {
        let folder = std::env::temp_dir().join(format!("dq-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("history");
        let start = 1_795_478_400_000;
        {
            let mut history = History::open(Some(&path), start).unwrap();
            history
                .tick([&row("q", 100)].into_iter(), start + 1000)
                .unwrap();
            for minute in 1..=10 {
                let now = start + minute * MINUTE_MS;
                let rows = [row("q", 100 + 6 * minute as u64), row("q2", 0)];
                history.tick(rows.iter(), now).unwrap();
            }
        }
        let mut history = History::open(Some(&path), start + 30 * MINUTE_MS).unwrap();
        let (delivered, known) = sums(&history, start + 30 * MINUTE_MS, HOUR_MS);
        assert_eq!(delivered, 60.0);
        assert!(
            (10..=12).contains(&known),
            "the time between is not known: {known}"
        );
        assert_eq!(
            sums(&history, start + 30 * MINUTE_MS, 7 * 24 * HOUR_MS).0,
            60.0
        );
        // Two days later the minutes are gone, and the hours are not; after two years nothing is left.
        history.tick([].into_iter(), start + 48 * HOUR_MS).unwrap();
        history.tick([].into_iter(), start + 49 * HOUR_MS).unwrap();
        let minutes = history
            .begin_read()
            .unwrap()
            .open_table(RINGS[0].slots)
            .unwrap();
        assert_eq!(minutes.iter().unwrap().count(), 0);
        assert_eq!(
            sums(&history, start + 49 * HOUR_MS, 7 * 24 * HOUR_MS).0,
            60.0
        );
        history
            .tick([].into_iter(), start + 20_000 * HOUR_MS)
            .unwrap();
        history
            .tick([].into_iter(), start + 20_001 * HOUR_MS)
            .unwrap();
        let hours = history
            .begin_read()
            .unwrap()
            .open_table(RINGS[1].slots)
            .unwrap();
        assert_eq!(hours.iter().unwrap().count(), 0);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_was_not_written_yet_is_told() {
        let start = 1_795_478_400_000;
        let mut history = History::open(None, start).unwrap();
        history
            .tick([&row("q", 100)].into_iter(), start + 1000)
            .unwrap();
        let now = row("q", 130);
        let parts = history
            .parts(
                Some(&now),
                &now.key,
                start + 30_000,
                Parts::new(start + 30_000 - HOUR_MS, MINUTE_MS, 60),
            )
            .unwrap();
        assert_eq!(parts.delivered.iter().sum::<f64>().round(), 30.0);
        assert_eq!(parts.delivered[58], 0.0, "in the last part");
    }

    #[test]
    fn a_queue_that_the_board_saw_begin_counts_from_nothing() {
        let start = 1_795_478_400_000;
        for first in [start + 1000, start + MINUTE_MS] {
            let mut history = History::open(None, start).unwrap();
            let mut new = row("q", 20);
            new.new_since = Some(std::time::Instant::now());
            let mut open = new.clone();
            open.perhaps_since = new.new_since;
            history.tick([open].iter(), first).unwrap();
            assert_eq!(sums(&history, first, HOUR_MS).0, 0.0, "or renamed");
            history.tick([new].iter(), first).unwrap();
            let later = start + 2 * MINUTE_MS;
            history.tick([row("q", 25)].iter(), later).unwrap();
            assert_eq!(sums(&history, later, HOUR_MS).0, 25.0);
        }
    }

    #[test]
    fn a_damaged_file_is_put_aside_and_another_one_is_left_alone() {
        let folder = std::env::temp_dir().join(format!("dq-damaged-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (path, aside) = (folder.join("history"), folder.join("history.damaged"));
        let start = 1_795_478_400_000;
        drop(History::open(Some(&path), start).unwrap());
        let whole = std::fs::read(&path).unwrap();
        for length in [10, 500, 4096, whole.len() / 2] {
            std::fs::write(&path, &whole[..length]).unwrap();
            let mut history = History::open(Some(&path), start).expect("a new file");
            assert!(
                history.tick([].into_iter(), start + MINUTE_MS).is_ok(),
                "{length}"
            );
            assert_eq!(std::fs::read(&aside).unwrap().len(), length);
        }
        std::fs::write(&path, "precious").unwrap();
        assert!(History::open(Some(&path), start).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn flipped_bits_end_neither_the_board_nor_its_history() {
        let folder = std::env::temp_dir().join(format!("dq-flipped-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (path, start) = (folder.join("history"), 1_795_478_400_000);
        let rows = |minute: u64| (0..50).map(move |queue| row(&format!("q{queue}"), minute * 5));
        let tick = |history: &mut History, minute: u64| {
            let rows: Vec<Row> = rows(minute).collect();
            history.tick(rows.iter(), start + minute as i64 * MINUTE_MS)
        };
        {
            let mut history = History::open(Some(&path), start).unwrap();
            (1..40).for_each(|minute| tick(&mut history, minute).unwrap());
        }
        let whole = std::fs::read(&path).unwrap();
        let mut random = 7_u64;
        let mut next = |below: usize| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) as usize % below
        };
        for round in 0..120 {
            let mut data = whole.clone();
            for _ in 0..[1, 5, 300][round % 3] {
                let end = if round % 2 == 0 { 700 } else { data.len() };
                data[4 + next(end - 4)] ^= 1 << next(8);
            }
            std::fs::write(&path, &data).unwrap();
            let mut history = History::open(Some(&path), start + 50 * MINUTE_MS).unwrap();
            let ticks = (51..54).map(|minute| tick(&mut history, minute));
            ticks.last().unwrap().unwrap();
            let key = QueueKey::new(0, "q7");
            history.keep_totals(&[(key, [1, 2])], Some("")).unwrap();
            assert!(history.totals().unwrap().len() == 1 && history.alerts().is_ok());
            assert_eq!(sums(&history, start + 60 * MINUTE_MS, HOUR_MS).0 % 5.0, 0.0);
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    /// Storage on a disk that may be full, and is still there when it is opened again.
    #[derive(Clone, Debug, Default)]
    struct Disk {
        bytes: std::sync::Arc<std::sync::Mutex<Vec<u8>>>,
        is_full: std::sync::Arc<std::sync::atomic::AtomicBool>,
    }

    impl Disk {
        fn has_room(&self) -> std::io::Result<()> {
            match self.is_full.load(std::sync::atomic::Ordering::SeqCst) {
                true => Err(ErrorKind::StorageFull.into()),
                false => Ok(()),
            }
        }
    }

    impl redb::StorageBackend for Disk {
        fn len(&self) -> std::io::Result<u64> {
            Ok(self.bytes.lock().unwrap().len() as u64)
        }

        fn read(&self, offset: u64, len: usize) -> std::io::Result<Vec<u8>> {
            Ok(self.bytes.lock().unwrap()[offset as usize..][..len].to_vec())
        }

        fn set_len(&self, len: u64) -> std::io::Result<()> {
            self.has_room()?;
            self.bytes.lock().unwrap().resize(len as usize, 0);
            Ok(())
        }

        fn sync_data(&self, _: bool) -> std::io::Result<()> {
            self.has_room()
        }

        fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
            self.has_room()?;
            self.bytes.lock().unwrap()[offset as usize..][..data.len()].copy_from_slice(data);
            Ok(())
        }
    }

    #[test]
    fn it_goes_on_when_a_full_disk_has_room_again() {
        let disk = Disk::default();
        let own = disk.clone();
        let open: Open = Box::new(move || {
            let file = Database::builder().create_with_backend(own.clone());
            file.map_err(|error| error.to_string())
        });
        let start = 1_795_478_400_000;
        let mut history = History::of(open, None, start).unwrap();
        let at = |minute: i64| start + minute * MINUTE_MS;
        history.tick([row("q", 0)].iter(), at(0) + 1).unwrap();
        history.tick([row("q", 5)].iter(), at(1)).unwrap();
        disk.is_full
            .store(true, std::sync::atomic::Ordering::SeqCst);
        for minute in 2..5 {
            assert!(history
                .tick([row("q", 5 * minute)].iter(), at(minute as i64))
                .is_err());
        }
        disk.is_full
            .store(false, std::sync::atomic::Ordering::SeqCst);
        let healed = (5..8).map(|minute| history.tick([row("q", 40)].iter(), at(minute)).is_ok());
        assert_eq!(healed.last(), Some(true));
        assert_eq!(sums(&history, at(8), HOUR_MS).0, 40.0);
    }
}
