//! What is printed. If the reader closes the pipe, as `head` does, the run ends.

use std::fmt::Display;
use std::io::{self, Write};

use anyhow::{Context, Result};

pub fn line(text: impl Display) -> Result<()> {
    writeln!(io::stdout(), "{text}").context("the output cannot be written")
}

/// A line of progress or an error: whether it can be written does not matter.
pub fn aside(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}
