//! `dq licenses`: of all that is in this file, as their licences want it said.

use dq_connect::output::print;

const OF_DQ: &str = include_str!("../../../LICENSE");
const OF_SERVER: &str = include_str!("../licenses/valkey.txt");
/// Made by build.rs.
const OF_CRATES: &str = include_str!(concat!(env!("OUT_DIR"), "/licenses.txt"));

pub fn run() -> Result<(), String> {
    let heading = |text: &str| format!("{text}\n{}\n\n", "=".repeat(text.len()));
    print(&format!(
        "{}{OF_DQ}\n{}{OF_SERVER}\n{}{OF_CRATES}",
        heading("dq, the program and the module"),
        heading("Valkey, where this file carries it"),
        heading("Crates in the program and in the module; names and versions, licences, texts"),
    ))
}
