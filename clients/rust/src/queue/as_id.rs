//! Ids of jobs, as a job that comes after them names them.

use std::borrow::Cow;

/// The id of a job, or what [`Queue::add`](crate::Queue::add) returns, which may be none.
pub trait AsId {
    /// The id; `None`: the job was not added.
    fn as_id(&self) -> Option<&[u8]>;
}

impl<T: AsId + ?Sized> AsId for &T {
    fn as_id(&self) -> Option<&[u8]> {
        (**self).as_id()
    }
}

impl<T: AsId> AsId for Option<T> {
    fn as_id(&self) -> Option<&[u8]> {
        self.as_ref().and_then(AsId::as_id)
    }
}

macro_rules! is_an_id {
    ($($kind:ty),*) => {$(
        impl AsId for $kind {
            fn as_id(&self) -> Option<&[u8]> {
                Some(self.as_ref())
            }
        }
    )*};
}

is_an_id!(str, String, [u8], Vec<u8>);

impl AsId for Cow<'_, str> {
    fn as_id(&self) -> Option<&[u8]> {
        (**self).as_id()
    }
}

impl<const N: usize> AsId for [u8; N] {
    fn as_id(&self) -> Option<&[u8]> {
        Some(self)
    }
}
