//! What is wrong with a cron expression, in a sentence that quotes it.

use std::borrow::Cow;
use std::fmt;

/// Bytes of an item that are quoted, at most.
const QUOTED_MAX: usize = 32;

/// What is wrong with an expression. The text is the reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronError(Cow<'static, str>);

impl CronError {
    pub(super) const fn of(text: &'static str) -> Self {
        CronError(Cow::Borrowed(text))
    }

    pub(super) fn of_field(field: &str, item: &[u8], why: &str) -> Self {
        let quoted = item[..item.len().min(QUOTED_MAX)].escape_ascii();
        CronError(format!("ERR CRON {field} '{quoted}': {why}").into())
    }

    /// The reply.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CronError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CronError {}
