//! The history of queues, by minute for a day and by hour for a year: in a file, or only in memory.

use std::collections::HashMap;
use std::path::Path;

use dq_watch::model::row::Row;
use dq_watch::model::QueueKey;
use redb::backends::InMemoryBackend;
use redb::{Database, ReadableTable, TableDefinition};

use crate::core::alerts::{Alert, State};
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

pub struct History {
    file: Database,
    /// What each queue reported when it was last recorded.
    told: HashMap<QueueKey, Told>,
    minute: u32,
    trimmed: u32,
}

fn number(at_ms: i64, long_ms: i64) -> u32 {
    at_ms.div_euclid(long_ms).clamp(0, i64::from(u32::MAX)) as u32
}

fn name(key: &QueueKey) -> Vec<u8> {
    [&key.db.to_be_bytes()[..], &key.name].concat()
}

impl History {
    pub fn open(path: Option<&Path>, now_ms: i64) -> Result<History, String> {
        let file = match path {
            Some(path) => Database::create(path)
                .map_err(|error| format!("--store {}: {error}", path.display()))?,
            None => Database::builder()
                .create_with_backend(InMemoryBackend::new())
                .map_err(|error| error.to_string())?,
        };
        let mut history = History {
            file,
            told: HashMap::new(),
            minute: number(now_ms, MINUTE_MS),
            trimmed: 0,
        };
        history
            .write(&[], now_ms)
            .map_err(|error| format!("--store: {error}"))?;
        Ok(history)
    }

    /// Records what the last minutes brought, once a minute is over. Of a queue that is new only its totals are noted:
    /// what they grew by is not known.
    pub fn tick<'a>(
        &mut self,
        rows: impl Iterator<Item = &'a Row>,
        now_ms: i64,
    ) -> Result<(), String> {
        if number(now_ms, MINUTE_MS) != self.minute {
            return self.write_down(rows, now_ms);
        }
        for row in rows {
            if let (Some(stats), false) = (&row.stats, self.told.contains_key(&row.key)) {
                let now = (stats.totals, stats.lateness.clone());
                self.told.insert(row.key.clone(), now);
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
        let mut grown = Vec::new();
        for row in rows {
            let Some(stats) = &row.stats else { continue };
            let now = (stats.totals, stats.lateness.clone());
            if let Some(old) = self.told.insert(row.key.clone(), now) {
                let slot = Slot::between(&old, stats);
                if !slot.is_empty() {
                    grown.push((name(&row.key), slot));
                }
            }
        }
        let at_ms = i64::from(self.minute) * MINUTE_MS;
        self.minute = number(now_ms, MINUTE_MS);
        self.write(&grown, at_ms).map_err(|error| error.to_string())
    }

    fn write(
        &mut self,
        grown: &[(Vec<u8>, Slot)],
        at_ms: i64,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let hour = number(at_ms, HOUR_MS);
        let trims = self.trimmed != hour;
        self.trimmed = hour;
        let write = self.file.begin_write()?;
        write.open_table(ALERTS)?;
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
        write.commit()?;
        Ok(())
    }

    /// Forgets the totals: other servers' totals are no growth of these.
    pub fn forget_totals(&mut self) {
        self.told.clear();
    }

    /// Keeps alerts that are on their way to the webhook.
    pub fn keep_alerts(&self, alerts: &[Alert]) -> Result<(), String> {
        self.change_alerts(alerts, |alert, _| Some((false, alert.clone())))
    }

    /// Records that the webhook accepted these alerts. Resolved ones are then removed.
    pub fn alerts_taken(&self, alerts: &[Alert]) -> Result<(), String> {
        self.change_alerts(alerts, |alert, kept| match kept {
            Some((_, kept)) if kept == *alert && alert.state == State::Resolved => None,
            Some((_, kept)) if kept == *alert => Some((true, kept)),
            // A newer alert is on its way.
            other => other,
        })
    }

    fn change_alerts(
        &self,
        alerts: &[Alert],
        change: impl Fn(&Alert, Option<(bool, Alert)>) -> Option<(bool, Alert)>,
    ) -> Result<(), String> {
        let change_all = || -> Result<(), Box<dyn std::error::Error>> {
            let write = self.file.begin_write()?;
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
            Ok(write.commit()?)
        };
        change_all().map_err(|error| error.to_string())
    }

    /// All alerts that are kept, and whether the webhook accepted them.
    pub fn alerts(&self) -> Result<Vec<(bool, Alert)>, String> {
        let all = || -> Result<Vec<(bool, Alert)>, Box<dyn std::error::Error>> {
            let table = self.file.begin_read()?.open_table(ALERTS)?;
            let all = table.iter()?;
            all.map(|it| Ok(read_alert(it?.1.value())?)).collect()
        };
        all().map_err(|error| error.to_string())
    }

    /// A queue's history in these parts, including what is not recorded yet.
    pub fn parts(
        &self,
        row: Option<&Row>,
        key: &QueueKey,
        now_ms: i64,
        mut parts: Parts,
    ) -> Result<Parts, String> {
        let read = self.read(&mut parts, key, now_ms);
        read.map_err(|error| error.to_string())?;
        let begun = i64::from(self.minute) * MINUTE_MS;
        let long_ms = (now_ms - begun).max(1);
        parts.knows(begun, long_ms);
        let stats = row.and_then(|row| row.stats.as_ref());
        if let (Some(stats), Some(old)) = (stats, self.told.get(key)) {
            parts.add(begun, long_ms, Slot::between(old, stats));
        }
        Ok(parts)
    }

    fn read(
        &self,
        parts: &mut Parts,
        key: &QueueKey,
        now_ms: i64,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let (from_ms, to_ms) = parts.range_ms();
        let to_ms = to_ms.min(now_ms);
        let reaches = |ring: &&Ring| now_ms - from_ms < ring.long_ms * i64::from(ring.kept);
        let ring = RINGS.iter().find(reaches).unwrap_or(&RINGS[1]);
        let (first, last) = (number(from_ms, ring.long_ms), number(to_ms, ring.long_ms));
        let read = self.file.begin_read()?;
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
        let folder = std::env::temp_dir().join(format!("dq-board-{}", std::process::id()));
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
            .file
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
            .file
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
}
