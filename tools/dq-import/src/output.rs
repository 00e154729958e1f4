//! What is said. Who reads it may go away, as `head` does: then what follows would not be heard, and the run ends.

use std::fmt::Display;
use std::io::{self, Write};

use anyhow::{Context, Result};

pub fn line(text: impl Display) -> Result<()> {
    writeln!(io::stdout(), "{text}").context("the output cannot be written")
}

/// Of how far it is: not needed.
pub fn aside(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}
