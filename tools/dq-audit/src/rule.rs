//! What must hold, under the names that docs/model gives it.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Nobody is handed a job before it is due.
    NeverEarly,
    /// A job has one live lease at most.
    OneLease,
    /// Each delivery's token is larger than all before it.
    TokensGrow,
    /// Attempts count deliveries, and do not jump.
    AttemptsCount,
    /// No delivery after the last attempt.
    AttemptsEnd,
    /// An old token, or none, changes nothing.
    StaleNeverActs,
    /// A job goes only by an end that it may have.
    NothingLost,
    /// Nothing happens to a job that was never added, or has ended.
    NothingFromNowhere,
    /// GROUPFIFO: in the order of adding, one at a time.
    InTurn,
    /// MAXRESERVED and GROUPMAX.
    WithinMax,
    /// A recurring job comes at later and later instants of its rule.
    OccurrencesGrow,
}

impl Rule {
    pub const ALL: [Rule; 11] = [
        Rule::NeverEarly,
        Rule::OneLease,
        Rule::TokensGrow,
        Rule::AttemptsCount,
        Rule::AttemptsEnd,
        Rule::StaleNeverActs,
        Rule::NothingLost,
        Rule::NothingFromNowhere,
        Rule::InTurn,
        Rule::WithinMax,
        Rule::OccurrencesGrow,
    ];
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
