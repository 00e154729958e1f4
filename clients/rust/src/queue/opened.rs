//! What a job was added with, of the record of a job.

use super::job_info::JobInfo;
use crate::codec::{decoded, Codec, Json};
use crate::envelope::{Envelope, Headers};
use crate::error::Error;
use redis::Value;
use serde::de::DeserializeOwned;

impl JobInfo {
    pub(crate) fn read(reply: Value) -> Option<Self> {
        (reply != Value::Nil).then(|| JobInfo::of(reply))
    }

    /// The data that it was added with, as [`Job::decode`](crate::Job::decode) decodes it.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, Error> {
        match Envelope::read(&self.payload) {
            Some(envelope) => decoded(&Json, envelope.data.get().as_bytes()),
            None => decoded(&Json, &self.payload),
        }
    }

    /// The data that [`Queue::add_with`](crate::Queue::add_with) has added, decoded.
    pub fn decode_with<T: DeserializeOwned>(&self, codec: &impl Codec) -> Result<T, Error> {
        decoded(codec, &self.payload)
    }

    /// The kind that it was added with.
    pub fn kind(&self) -> Option<String> {
        Envelope::read(&self.payload)?.kind
    }

    /// The headers that it was added with.
    pub fn headers(&self) -> Headers {
        Envelope::read(&self.payload).map_or_else(Headers::new, |envelope| envelope.headers)
    }
}
