//! What a server has written into its AOF, judged by dq-audit: `make test-audit` names that in `DQ_AUDIT`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// None where nobody asked for it.
pub fn program() -> Option<PathBuf> {
    let path = env::var_os("DQ_AUDIT").filter(|path| !path.is_empty())?;
    Some(super::root().join(path))
}

/// Without a fault, if anybody asked for it.
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

/// Writes the history of a queue, for docs/model to follow, into the folder that `DQ_TRACES` names. A few hundred
/// steps of it: the model checker takes some seconds for them.
#[track_caller]
pub fn trace(file: &Path, queue: &str, name: &str) {
    let (Some(program), Some(folder)) = (program(), env::var_os("DQ_TRACES")) else {
        return;
    };
    let mut command = Command::new(program);
    command.args(["--steps", "300", "--trace", queue]).arg(file);
    let _lock = super::one_process_at_a_time();
    let output = command.output().expect("dq-audit, which has run before");
    let errors = String::from_utf8_lossy(&output.stderr);
    // One that begins with what the model leaves out has none.
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
    let output = Command::new(program).args(options).arg(file).output();
    output.unwrap_or_else(|error| panic!("cannot run {}: {error}", program.display()))
}
