//! Data in other forms than JSON.

use crate::error::{BoxError, Error};
use crate::guard::{catch, text_of, Kept};
use crate::json;
use serde::de::DeserializeOwned;
use serde::Serialize;

/// Encodes and decodes data in another form than JSON, such as MessagePack or CBOR. Data of a job with a kind or
/// headers is always JSON, as it travels in an envelope; so are results.
///
/// ```
/// # use dq_redis::{BoxError, Codec, Error, Job, NewJob, Queue};
/// # use serde::{de::DeserializeOwned, Serialize};
/// struct Pretty;
///
/// impl Codec for Pretty {
///     fn encode<T: Serialize + ?Sized>(&self, data: &T) -> Result<Vec<u8>, BoxError> {
///         Ok(serde_json::to_vec_pretty(data)?)
///     }
///     fn decode<T: DeserializeOwned>(&self, payload: &[u8]) -> Result<T, BoxError> {
///         Ok(serde_json::from_slice(payload)?)
///     }
/// }
///
/// # async fn add(queue: Queue) -> Result<(), Error> {
/// queue.add_with(&Pretty, &17).id("close:17").await?;
/// # Ok(()) }
/// async fn close(job: Job) -> Result<(), Error> {
///     let order: u32 = job.decode_with(&Pretty)?;
///     println!("closed order {order}");
///     Ok(())
/// }
/// ```
pub trait Codec {
    /// Encodes the data to a payload.
    fn encode<T: Serialize + ?Sized>(&self, data: &T) -> Result<Vec<u8>, BoxError>;

    /// Decodes a payload that [`Codec::encode`] made.
    fn decode<T: DeserializeOwned>(&self, payload: &[u8]) -> Result<T, BoxError>;
}

/// JSON, the default. A float that is NaN or infinite cannot be encoded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Json;

impl Codec for Json {
    fn encode<T: Serialize + ?Sized>(&self, data: &T) -> Result<Vec<u8>, BoxError> {
        Ok(json::to_vec(data)?)
    }

    fn decode<T: DeserializeOwned>(&self, payload: &[u8]) -> Result<T, BoxError> {
        Ok(serde_json::from_slice(payload)?)
    }
}

/// Encodes by a codec of the user's; the error is its text.
pub(crate) fn encoded<T: Serialize + ?Sized>(
    codec: &impl Codec,
    data: &T,
) -> Result<Vec<u8>, String> {
    match catch(|| codec.encode(data)) {
        Ok(Ok(payload)) => Ok(payload),
        Ok(Err(error)) => Err(said(error)),
        Err(panicked) => Err(panicked.to_string()),
    }
}

pub(crate) fn decoded<T: DeserializeOwned>(codec: &impl Codec, payload: &[u8]) -> Result<T, Error> {
    match catch(|| codec.decode(payload)) {
        Ok(read) => read.map_err(|error| Error::Payload(said(error))),
        Err(panicked) => Err(Error::Payload(panicked.to_string())),
    }
}

fn said(error: BoxError) -> String {
    let error = Kept::new(error);
    error
        .get()
        .map(|error| text_of(error.as_ref()))
        .unwrap_or_default()
}
