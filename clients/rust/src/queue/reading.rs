//! The fields of a reply, typed.

use super::records::{FailedAttempt, State};
use crate::core::before;
use crate::result::JobResult;
use crate::values;
use redis::Value;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

pub(super) struct Fields(pub(super) BTreeMap<String, Value>);

impl Fields {
    pub(super) fn of(reply: Value) -> Self {
        Fields(values::map(reply).into_iter().collect())
    }

    fn field(&self, name: &str) -> &Value {
        self.0.get(name).unwrap_or(&Value::Nil)
    }

    fn list(&self, name: &str) -> impl Iterator<Item = Value> {
        values::list(self.field(name).clone()).into_iter()
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        values::text(self.field(name).clone())
    }

    pub(super) fn texts(&self, name: &str) -> Vec<String> {
        self.list(name).filter_map(values::text).collect()
    }

    pub(super) fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        values::bytes(self.field(name).clone())
    }

    pub(super) fn int(&self, name: &str) -> i64 {
        values::int(self.field(name))
    }

    pub(super) fn maybe_int(&self, name: &str) -> Option<i64> {
        let there = self.0.get(name).filter(|value| **value != Value::Nil);
        there.map(values::int)
    }

    pub(super) fn instant(&self, name: &str) -> Option<SystemTime> {
        values::instant(self.field(name))
    }

    pub(super) fn duration(&self, name: &str) -> Option<Duration> {
        let is_there = matches!(self.field(name), Value::Int(_));
        is_there.then(|| values::duration(self.field(name)))
    }

    pub(super) fn durations(&self, name: &str) -> Vec<Duration> {
        self.list(name)
            .map(|step| values::duration(&step))
            .collect()
    }

    pub(super) fn state(&self, name: &str) -> State {
        let state = self.text(name).and_then(|name| State::named(&name));
        state.unwrap_or(State::All)
    }

    pub(super) fn steps(&self, name: &str) -> BTreeMap<String, Vec<u8>> {
        let steps = values::pairs(self.field(name).clone()).into_iter();
        steps
            .map(|(name, value)| (values::lossy(name), value))
            .collect()
    }

    pub(super) fn history(&self, name: &str) -> Vec<FailedAttempt> {
        self.list(name).filter_map(FailedAttempt::of).collect()
    }

    pub(super) fn results(&self, name: &str) -> Vec<JobResult> {
        let rows = self.list(name).filter_map(before);
        rows.map(|row| JobResult::of(&row)).collect()
    }
}
