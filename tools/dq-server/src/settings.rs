//! Settings of the server that endanger jobs.

use std::fs;
use std::path::Path;

use dq_connect::link::PATIENCE;
use dq_connect::secret::variable;
use dq_connect::target::Target;
use redis::IntoConnectionInfo;

const LOOKED_AT: [&str; 5] = [
    "maxmemory",
    "maxmemory-policy",
    "appendonly",
    "appendfsync",
    "save",
];

/// A sentence for each, as the server that has just started has them; or one that says why nobody looked.
pub fn warnings(config: &Path, port: Option<u16>) -> Vec<String> {
    let text = fs::read_to_string(config).unwrap_or_default();
    let said = |name: &str| {
        let mut lines = text
            .lines()
            .filter_map(|line| line.trim().split_once(char::is_whitespace));
        let last = lines
            .by_ref()
            .filter(|(it, _)| it.eq_ignore_ascii_case(name))
            .last();
        last.map(|(_, value)| value.trim().trim_matches('"').to_owned())
    };
    let port = port.or_else(|| said("port")?.parse().ok()).unwrap_or(6379);
    let password = variable("REDISCLI_AUTH").or_else(|| said("requirepass"));
    match settings(port, password) {
        Ok(settings) => dangers(&settings),
        Err(why) => vec![format!(
            "whether its settings endanger jobs was not looked at ({why}): REDISCLI_AUTH is the password that is taken"
        )],
    }
}

fn settings(port: u16, password: Option<String>) -> Result<Settings, String> {
    let info = format!("redis://127.0.0.1:{port}").into_connection_info();
    let info = info.map_err(|error| error.to_string())?;
    let mut connection = Target::new(info, None, password.as_deref()).open(0, PATIENCE)?;
    let mut values = LOOKED_AT.map(|_| String::new());
    for (name, value) in LOOKED_AT.iter().zip(&mut values) {
        let said = redis::cmd("CONFIG")
            .arg("GET")
            .arg(name)
            .query(&mut connection);
        let (_, said): (String, String) = said.map_err(|error| error.to_string())?;
        *value = said;
    }
    Ok(Settings(values))
}

/// In the order of [`LOOKED_AT`].
struct Settings([String; 5]);

fn dangers(Settings([maxmemory, policy, appendonly, appendfsync, save]): &Settings) -> Vec<String> {
    let mut found = Vec::new();
    if maxmemory != "0" && policy != "noeviction" {
        let what = match policy.starts_with("volatile") {
            true => "queues that have a TTL",
            false => "whole queues",
        };
        found.push(format!(
            "maxmemory-policy {policy}: where memory is short the server throws {what} away; set noeviction"
        ));
    }
    match (appendonly.as_str(), save.as_str()) {
        ("no", "") => found.push(
            "appendonly no and save \"\": nothing is saved, a restart loses all jobs; set appendonly yes".to_owned(),
        ),
        ("no", _) => found.push(
            "appendonly no: a crash loses what came since the last snapshot; set appendonly yes".to_owned(),
        ),
        _ if appendfsync == "no" => found.push(
            "appendfsync no: a crash of the machine loses what the kernel has not written; set everysec".to_owned(),
        ),
        _ => {}
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_endangers_jobs_is_said() {
        for (values, expected) in [
            (["0", "noeviction", "yes", "everysec", ""], vec![]),
            (["0", "allkeys-lru", "yes", "always", "900 1"], vec![]),
            (["1000000", "noeviction", "yes", "everysec", ""], vec![]),
            (
                ["1000000", "allkeys-lru", "yes", "everysec", ""],
                vec!["whole queues"],
            ),
            (
                ["1000000", "volatile-lru", "yes", "everysec", ""],
                vec!["a TTL"],
            ),
            (
                ["0", "noeviction", "no", "everysec", ""],
                vec!["loses all jobs"],
            ),
            (
                ["0", "noeviction", "no", "no", "900 1"],
                vec!["last snapshot"],
            ),
            (
                ["1", "volatile-ttl", "yes", "no", "900 1"],
                vec!["a TTL", "kernel"],
            ),
        ] {
            let found = dangers(&Settings(values.map(str::to_owned)));
            assert_eq!(found.len(), expected.len(), "{found:?}");
            found
                .iter()
                .zip(expected)
                .for_each(|(it, part)| assert!(it.contains(part), "{it}"));
        }
    }
}
