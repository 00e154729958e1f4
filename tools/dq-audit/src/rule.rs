//! The rules that must hold, with the names that docs/model gives them.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// No job is delivered before it is due.
    NeverEarly,
    /// A job has at most one live lease.
    OneLease,
    /// Each delivery's token is larger than all before it.
    TokensGrow,
    /// Attempts count deliveries, and do not jump.
    AttemptsCount,
    /// No delivery after the last attempt.
    AttemptsEnd,
    /// An old token, or none, changes nothing.
    StaleNeverActs,
    /// A job is removed only by an end that it may have.
    NothingLost,
    /// Nothing happens to a job that was never added, or has ended.
    NothingFromNowhere,
    /// GROUPFIFO: jobs are delivered in the order of adding, one at a time.
    InTurn,
    /// Reserved jobs stay within MAXRESERVED and GROUPMAX.
    WithinMax,
    /// Each occurrence of a recurring job is later than the one before, at an instant of its rule.
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
