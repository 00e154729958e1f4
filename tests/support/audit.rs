//! Judges with dq audit what a server has written into its AOF. `make test-audit` names the program in `DQ_PROGRAM`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The path of dq; None if no audit was requested.
pub fn program() -> Option<PathBuf> {
    let path = env::var_os("DQ_PROGRAM").filter(|path| !path.is_empty())?;
    Some(super::root().join(path))
}

/// Asserts that dq audit finds no fault, if an audit was requested.
#[track_caller]
pub fn assert_faultless(file: &Path) {
    let Some(program) = program() else {
        return;
    };
    let output = judge(&program, &[], file);
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{}: {text}{errors}",
        file.display()
    );
}

/// Writes the history of a queue into the folder `DQ_TRACES`, for docs/model to follow: a few hundred steps, for which
/// the model checker takes some seconds.
#[track_caller]
pub fn trace(file: &Path, queue: &str, name: &str) {
    let (Some(program), Some(folder)) = (program(), env::var_os("DQ_TRACES")) else {
        return;
    };
    let mut command = Command::new(program);
    command
        .args(["audit", "--steps", "300", "--trace", queue])
        .arg(file);
    let _lock = super::one_process_at_a_time();
    let output = command.output().expect("dq audit, which has run before");
    let errors = String::from_utf8_lossy(&output.stderr);
    // A history that begins with something that the model leaves out gives no trace.
    let has_none = errors.contains("no history");
    assert!(output.status.success() || has_none, "{errors}");
    if has_none {
        return;
    }
    let name = Path::new(&folder).join(format!("{name}-{queue}.tla"));
    std::fs::write(name, output.stdout).expect("a file to write");
}

pub fn judge(program: &Path, options: &[&str], file: &Path) -> Output {
    let _lock = super::one_process_at_a_time();
    let output = Command::new(program)
        .arg("audit")
        .args(options)
        .arg(file)
        .output();
    output.unwrap_or_else(|error| panic!("cannot run {}: {error}", program.display()))
}
