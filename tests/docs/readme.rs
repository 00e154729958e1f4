//! The minute with redis-cli in the README: one session, in indented blocks, with the client's own prompt.

use crate::examples::Runner;

const PROMPT: &str = "    127.0.0.1:6379> ";

/// The session as the examples of the reference are written.
fn session() -> String {
    let path = crate::support::root().join("README.md");
    let readme = std::fs::read_to_string(path).expect("README.md");
    let mut session = "```redis-cli\n".to_owned();
    let mut inside = false;
    for line in readme.lines() {
        let (start, rest) = match (line.strip_prefix(PROMPT), line.strip_prefix("    ")) {
            (Some(command), _) => ("dq> ", command),
            (None, Some(reply)) if inside => ("", reply),
            _ => {
                inside = false;
                continue;
            }
        };
        inside = true;
        let is_time = rest.starts_with('(') && rest.ends_with("s)");
        if !is_time {
            session += &format!("{start}{rest}\n");
        }
    }
    session + "```\n"
}

#[test]
fn its_minute_is_true() {
    let session = session();
    assert!(session.matches("dq> ").count() >= 10, "{session}");
    let differences = Runner::start().differences(&session);
    assert!(differences.is_empty(), "{differences:#?}");
}

/// A reply that came from another answer to the first command.
#[test]
fn a_wrong_minute_is_noticed() {
    let wrong = session().replacen("\"reminder\"\n", "(nil)\n", 1);
    let until_the_second = wrong.split("dq> ").take(2).collect::<Vec<_>>().join("dq> ");
    assert_eq!(
        Runner::start()
            .differences(&(until_the_second + "```\n"))
            .len(),
        1
    );
}
