//! `make generated`: writes the files that are stale, and names them. With `--check` it only names them.

use dq_generate::Source;
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs, io};

fn main() -> io::Result<ExitCode> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let is_check = env::args().nth(1).is_some_and(|word| word == "--check");
    let stale = Source::read(root)?.stale(root);
    for (path, text) in &stale {
        println!("{path}");
        if !is_check {
            fs::write(root.join(path), text)?;
        }
    }
    Ok(match is_check && !stale.is_empty() {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}
