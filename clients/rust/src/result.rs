//! Results of jobs, and values of steps.

use crate::error::{Error, Outcome};
use crate::guard::catch;
use crate::json;
use crate::values::lossy;
use serde::de::DeserializeOwned;
use serde::Serialize;

/// How a job ended that another job came after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobResult {
    /// The id of the job that ended.
    pub id: String,
    /// How it ended. `None`: the job that waited was kicked before.
    pub outcome: Option<Outcome>,
    /// The result of a done job, the reason of a dead one.
    pub value: Option<Vec<u8>>,
}

impl JobResult {
    pub(crate) fn of(row: &crate::core::Before) -> Self {
        let (id, outcome, value) = row;
        JobResult {
            id: lossy(id.clone()),
            outcome: outcome.as_deref().map(Outcome::named),
            value: value.clone(),
        }
    }

    /// The result of a done job, decoded; `None` without one.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<Option<T>, Error> {
        self.value.as_deref().map(decode).transpose()
    }
}

pub(crate) fn decode<T: DeserializeOwned>(value: &[u8]) -> Result<T, Error> {
    let read = catch(|| serde_json::from_slice(value));
    match read {
        Ok(read) => read.map_err(|error| Error::Decode(error.to_string())),
        Err(panicked) => Err(Error::Decode(panicked.to_string())),
    }
}

/// As JSON; `None` for `()` and `None`.
pub(crate) fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Option<Vec<u8>>, Error> {
    let written = catch(|| json::to_vec(value));
    match written {
        Ok(Ok(json)) => Ok((json != b"null").then_some(json)),
        Ok(Err(error)) => Err(Error::Encode(error.to_string())),
        Err(panicked) => Err(Error::Encode(panicked.to_string())),
    }
}
