//! Why a question has no answer.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The question makes no sense.
    Asked(String),
    /// There is nothing of that name.
    Unknown(String),
    /// Whoever asks may not.
    Forbidden(String),
    /// The server says no.
    Refused(String),
    /// No server answers.
    Lost(String),
}

impl Failure {
    pub fn asked(why: &str) -> Failure {
        Failure::Asked(why.to_owned())
    }

    pub fn why(&self) -> &str {
        match self {
            Failure::Asked(why)
            | Failure::Unknown(why)
            | Failure::Forbidden(why)
            | Failure::Refused(why)
            | Failure::Lost(why) => why,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.write_str(self.why())
    }
}
