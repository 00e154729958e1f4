//! What bytes and numbers look like on the screen.

pub mod escape;
pub mod units;
pub mod why;
