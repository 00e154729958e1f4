//! A job as it is read from any source.

use std::collections::HashSet;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{bail, Result};
use sha2::{Digest, Sha256};

/// A job as it will be in dq.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The job's id in dq. Derived from what the source itself calls the job, so that it is the same
    /// in every run.
    pub id: Vec<u8>,
    pub payload: Vec<u8>,
    pub due_ms: u64,
    pub options: JobOptions,
    /// By what the source finds the job.
    pub handle: Vec<u8>,
    /// Changes when the job does, and only then: the due time as the source writes it, counters of deliveries.
    pub version: Vec<u8>,
}

/// What the source says about a job besides its due time; the queue's defaults hold for the rest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobOptions {
    pub priority: Option<i64>,
    pub ttr_ms: Option<u64>,
    pub attempts: Option<u64>,
    /// None: as the queue or the server says.
    pub backoff_ms: Option<Vec<u64>>,
    pub rule: Option<Rule>,
    /// Further words of DQ.ADD, AFTER before all others.
    pub words: Vec<Vec<u8>>,
}

impl JobOptions {
    /// Whether it is blocked until other jobs end: it may have no due time yet.
    pub fn waits(&self) -> bool {
        self.words.first().is_some_and(|word| word == b"AFTER")
    }
}

/// The rule of a recurring job.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The rule as words of DQ.ADD.
    pub words: Vec<String>,
    /// The first run; None: the rule's first instant after now.
    pub starts_ms: Option<u64>,
}

pub fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |now| now.as_millis() as u64)
}

/// The last instant that dq knows: the year 2109.
pub const LAST_INSTANT_MS: u64 = (1 << 42) - 1;

impl Entry {
    /// A hash by which a changed job is told from the one that was imported.
    pub fn mark(&self) -> String {
        let mut hash = Sha256::new();
        hash.update((self.version.len() as u64).to_le_bytes());
        hash.update(&self.version);
        hash.update(&self.payload);
        hex(&hash.finalize()[..8])
    }
}

/// What a source contains: a job to import, or something that stays behind, and why.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Job(Entry),
    Left { name: Vec<u8>, why: &'static str },
}

impl Item {
    /// The name by which the item is counted once, even if a scan shows it twice.
    fn name(&self) -> &[u8] {
        match self {
            Item::Job(entry) => &entry.handle,
            Item::Left { name, .. } => name,
        }
    }
}

/// Names that a pass has met: a scan may show twice what moves meanwhile.
#[derive(Default)]
pub struct Seen(HashSet<[u8; 16]>);

impl Seen {
    pub fn keep_new(&mut self, items: Vec<Item>) -> Vec<Item> {
        items
            .into_iter()
            .filter(|item| self.0.insert(digest(item.name())))
            .collect()
    }

    /// Adds a name; returns whether it is new.
    pub fn insert(&mut self, name: &[u8]) -> bool {
        self.0.insert(digest(name))
    }

    pub fn contains(&self, name: &[u8]) -> bool {
        self.0.contains(&digest(name))
    }
}

/// An id for a job without one: practically unique, and the same in every run.
pub fn id_from(bytes: &[u8]) -> Vec<u8> {
    hex(&digest(bytes)).into_bytes()
}

/// Where the id of a job is that has none of its own.
#[derive(Clone, Debug)]
pub enum IdRule {
    /// A hash of what the source calls the job.
    Hash,
    /// A field of the payload, a JSON object.
    Json(String),
    /// The payload, plain text or a JSON string, without the text before and after the id.
    Text { before: String, after: String },
}

impl IdRule {
    pub fn new(id_json: &Option<String>, id_text: &Option<String>) -> Result<IdRule> {
        if let Some(pattern) = id_text {
            let (before, after) = around_id("--id-text", pattern)?;
            return Ok(IdRule::Text { before, after });
        }
        Ok(id_json.clone().map_or(IdRule::Hash, IdRule::Json))
    }

    /// The id, or why there is none. `name`: what the source calls the job.
    pub fn id(&self, payload: &[u8], name: &[u8]) -> Result<Vec<u8>, &'static str> {
        match self {
            IdRule::Hash => Ok(id_from(name)),
            IdRule::Json(field) => field_of(payload, field).ok_or(NO_JSON_ID),
            IdRule::Text { before, after } => text_id(payload, before, after).ok_or(NO_TEXT_ID),
        }
    }
}

const NO_JSON_ID: &str = "it is not a JSON object with that field";
const NO_TEXT_ID: &str = "it does not match --id-text";

/// The texts before and after `{id}`.
pub fn around_id(option: &str, pattern: &str) -> Result<(String, String)> {
    match pattern.split_once("{id}") {
        Some((before, after)) => Ok((before.to_owned(), after.to_owned())),
        None => bail!("{option} must contain {{id}}, which stands for the id: {pattern}"),
    }
}

fn text_id(payload: &[u8], before: &str, after: &str) -> Option<Vec<u8>> {
    let json: Option<String> = serde_json::from_slice(payload).ok();
    let text = json.as_ref().map_or(payload, String::as_bytes);
    let id = text
        .strip_prefix(before.as_bytes())?
        .strip_suffix(after.as_bytes())?;
    (!id.is_empty()).then(|| id.to_vec())
}

/// A field that is a string or an integer, as text.
fn field_of(object: &[u8], field: &str) -> Option<Vec<u8>> {
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(object).ok()?;
    match object.get(field)? {
        serde_json::Value::String(text) if !text.is_empty() => Some(text.clone().into_bytes()),
        serde_json::Value::Number(number) if !number.is_f64() => {
            Some(number.to_string().into_bytes())
        }
        _ => None,
    }
}

pub fn digest(bytes: &[u8]) -> [u8; 16] {
    let hash = Sha256::digest(bytes);
    hash[..16].try_into().expect("16 of 32 bytes")
}

/// As Redis scripts compute it, to compare a payload without sending it.
pub fn sha1(bytes: &[u8]) -> String {
    sha1_smol::Sha1::from(bytes).digest().to_string()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A sorted set's score as an instant, where one of the score is `ms_each`: the first millisecond whose own score is
/// not smaller. So no job is early, and a whole millisecond remains that millisecond.
pub fn instant_ms(score: &str, ms_each: f64) -> Option<u64> {
    let score: f64 = score.parse().ok()?;
    let near = (score * ms_each).round();
    let first = [near - 1.0, near, near + 1.0]
        .into_iter()
        .find(|ms| ms / ms_each >= score)?;
    (first >= 0.0 && first <= LAST_INSTANT_MS as f64).then_some(first as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_become_instants_that_are_never_early() {
        let seconds = |score: &str| instant_ms(score, 1000.0);
        assert_eq!(seconds("1795159820.557"), Some(1_795_159_820_557));
        assert_eq!(seconds("1795159820"), Some(1_795_159_820_000));
        for later in ["1795159820.5575", "1795159820.5570005"] {
            assert_eq!(seconds(later), Some(1_795_159_820_558), "{later}");
        }
        // A score of seconds, with any binary fraction, and with 17 digits as Redis 7.0 writes it.
        for ms in 1_795_159_820_000_u64..1_795_159_821_000 {
            let written = format!("{:.16e}", ms as f64 / 1000.0);
            assert_eq!(seconds(&written), Some(ms), "{written}");
            let next = (ms as f64 / 1000.0).next_up().to_string();
            assert_eq!(seconds(&next), Some(ms + 1), "{next}");
        }
        assert_eq!(instant_ms("1795159820557", 1.0), Some(1_795_159_820_557));
        assert_eq!(
            instant_ms("1795159820557.001", 1.0),
            Some(1_795_159_820_558)
        );
        // BullMQ: milliseconds times 4096, and the order within the millisecond.
        assert_eq!(
            instant_ms(&(1_795_159_820_557_u64 * 4096).to_string(), 1.0 / 4096.0),
            Some(1_795_159_820_557)
        );
    }

    #[test]
    fn scores_that_are_no_instants_are_refused() {
        for score in ["inf", "-inf", "nan", "-1", "1e300", "x", ""] {
            assert_eq!(instant_ms(score, 1.0), None, "{score}");
        }
        assert_eq!(instant_ms("4398046511103", 1.0), Some(LAST_INSTANT_MS));
        assert_eq!(instant_ms("4398046511104", 1.0), None);
    }

    #[test]
    fn an_id_is_a_string_or_an_integer() {
        assert_eq!(field_of(br#"{"id":"a"}"#, "id"), Some(b"a".to_vec()));
        assert_eq!(field_of(br#"{"id":17}"#, "id"), Some(b"17".to_vec()));
        for none in [r#"{"id":""}"#, r#"{"id":1.5}"#, r#"{}"#, r#"[1]"#, "x"] {
            assert_eq!(field_of(none.as_bytes(), "id"), None, "{none}");
        }
    }

    #[test]
    fn an_id_in_text_is_what_the_pattern_leaves() {
        let found = |payload: &[u8], pattern: &str| {
            IdRule::new(&None, &Some(pattern.to_owned()))
                .expect("a pattern")
                .id(payload, b"name")
                .ok()
        };
        assert_eq!(found(b"17", "{id}"), Some(b"17".to_vec()));
        assert_eq!(found(br#""17""#, "{id}"), Some(b"17".to_vec()));
        assert_eq!(found(br#""a\"b""#, "{id}"), Some(b"a\"b".to_vec()));
        assert_eq!(
            found(b"order:17:close", "order:{id}:close"),
            Some(b"17".to_vec())
        );
        assert_eq!(found(b"\xff\x00", "{id}"), Some(b"\xff\x00".to_vec()));
        assert_eq!(found(b"order:17", "{id}"), Some(b"order:17".to_vec()));
        for (payload, pattern) in [
            (&b""[..], "{id}"),
            (b"\"\"", "{id}"),
            (b"order:", "order:{id}"),
            (b"bill:17", "order:{id}"),
            (b"aba", "ab{id}ba"),
        ] {
            assert_eq!(found(payload, pattern), None, "{payload:?} {pattern}");
        }
        assert!(IdRule::new(&None, &Some("order".to_owned())).is_err());
    }

    #[test]
    fn a_mark_changes_with_version_and_payload() {
        let entry = Entry {
            id: b"a".to_vec(),
            payload: b"p".to_vec(),
            due_ms: 1,
            options: JobOptions::default(),
            handle: b"a".to_vec(),
            version: b"1".to_vec(),
        };
        let later = Entry {
            version: b"2".to_vec(),
            ..entry.clone()
        };
        let other = Entry {
            payload: b"1p".to_vec(),
            version: Vec::new(),
            ..entry.clone()
        };
        assert_eq!(entry.mark(), entry.clone().mark());
        assert_ne!(entry.mark(), later.mark());
        assert_ne!(entry.mark(), other.mark());
    }
}
