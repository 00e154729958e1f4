//! Why a question has no answer.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The question is malformed.
    Asked(String),
    /// Nothing has that name.
    Unknown(String),
    /// The visitor has no permission.
    Forbidden(String),
    /// The server refuses.
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
