//! Values as bytes: numbers of variable length, strings behind their length, one field behind the other.

use serde::{Deserialize, Serialize};

/// Appends to a Vec directly, instead of through an iterator of bytes.
struct Append<'a>(&'a mut Vec<u8>);

impl postcard::ser_flavors::Flavor for Append<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

pub(super) fn append<T: Serialize>(value: &T, bytes: &mut Vec<u8>) {
    let encoded = postcard::serialize_with_flavor(value, Append(bytes));
    debug_assert!(encoded.is_ok(), "a Vec takes everything");
}

/// Takes one value off the front; `None` if the bytes are not one.
pub(super) fn take<'a, T: Deserialize<'a>>(bytes: &mut &'a [u8]) -> Option<T> {
    let (value, rest) = postcard::take_from_bytes(bytes).ok()?;
    *bytes = rest;
    Some(value)
}
