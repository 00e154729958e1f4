//! What becomes of all that a job has when something happens to it, as the contract says: written by hand, field by
//! field of DQ.GET, and what each moment makes of it.

use std::collections::HashMap;

use crate::probe::{plain, show, Probe};
use crate::support::Reply;
use crate::turned::builder;

/// `=`: as in the first column. `+10`: so many ms after the beginning. `now`: a token that fits.
const OF_A_JOB: &str = "
    field        | held        | NACK                | TOUCH  | lease                     | dead                | kicked              | done    | run again | replaced
    payload      | 'load'      | =                   | =      | =                         | =                   | =                   | =       | =         | 'new'
    state        | 'reserved'  | 'ready'             | =      | 'ready'                   | 'dead'              | 'ready'             | 'done'  | 'ready'   | 'ready'
    priority     | 4           | =                   | =      | =                         | =                   | =                   | =       | =         | 0
    due          | +0          | +20                 | =      | =                         | =                   | +20                 | =       | +20       | +20
    deadline     | +5010       | nil                 | +5020  | nil                       | nil                 | nil                 | nil     | nil       | nil
    ttr          | 5000        | =                   | =      | =                         | =                   | =                   | =       | =         | 60000
    attempts     | 2           | =                   | =      | =                         | =                   | 0                   | =       | 0         | 0
    max-attempts | 3           | =                   | =      | =                         | =                   | =                   | =       | =         | 0
    backoff      | [ 1 10 ]    | =                   | =      | =                         | =                   | =                   | =       | =         | [ ]
    expires      | +900000     | =                   | =      | =                         | =                   | =                   | nil     | nil       | nil
    token        | now         | nil                 | =      | =                         | nil                 | nil                 | nil     | nil       | nil
    reason       | 'why'       | 'other'             | =      | 'lease\\x20ended'          | 'end'               | 'end'               | nil     | nil       | nil
    failed       | +0          | +20                 | =      | +5010                     | +20                 | +20                 | nil     | nil       | nil
    history      | [ FIRST ]   | [ FIRST NACKED ]    | =      | [ FIRST TIMEOUT ]         | [ FIRST FATAL ]     | [ FIRST FATAL ]     | =       | =         | [ ]
    group        | 'g'         | =                   | =      | =                         | =                   | =                   | =       | =         | nil
    keep         | 60000       | =                   | =      | =                         | =                   | =                   | =       | =         | nil
    cost         | 2           | =                   | =      | =                         | =                   | =                   | =       | =         | 1
    label        | 'l'         | =                   | =      | =                         | =                   | =                   | =       | =         | nil
    progress     | 'half'      | =                   | 'more' | =                         | =                   | nil                 | =       | nil       | nil
    steps        | { 's' 'v' } | =                   | =      | =                         | =                   | =                   | nil     | nil       | nil
    started      | +10         | nil                 | =      | nil                       | nil                 | nil                 | =       | nil       | nil
    finished     | nil         | =                   | =      | =                         | =                   | =                   | +20     | nil       | nil
    result       | nil         | =                   | =      | =                         | =                   | =                   | 'yes'   | nil       | nil
";

/// A recurring job, whose occurrence began 60 seconds after the beginning, and the copies that it leaves.
const OF_A_RULE: &str = "
    field        | held        | same rule | another rule | next    | after a death | its dead one        | its done one
    payload      | 'load'      | 'new'     | 'new'        | =       | =             | =                   | =
    state        | 'reserved'  | =         | 'delayed'    | 'delayed' | 'delayed'   | 'dead'              | 'done'
    priority     | 4           | 0         | 0            | =       | =             | =                   | =
    due          | +60000      | =         | +130020      | +120000 | +120000       | =                   | =
    deadline     | +65010      | =         | nil          | nil     | nil           | nil                 | nil
    ttr          | 5000        | 60000     | 60000        | =       | =             | =                   | =
    attempts     | 2           | =         | 0            | 0       | 0             | =                   | =
    max-attempts | 3           | 0         | 0            | =       | =             | =                   | =
    backoff      | [ 1 10 ]    | [ ]       | [ ]          | =       | =             | =                   | =
    expires      | +960000     | nil       | nil          | +1020000 | +1020000     | nil                 | nil
    token        | now         | =         | nil          | nil     | nil           | nil                 | nil
    reason       | 'why'       | =         | nil          | =       | nil           | 'end'               | nil
    failed       | +60000      | =         | nil          | =       | nil           | +60020              | nil
    history      | [ FIRST ]   | =         | [ ]          | [ ]     | [ ]           | [ FIRST FATAL ]     | =
    group        | 'g'         | nil       | nil          | =       | =             | =                   | =
    keep         | 60000       | nil       | nil          | =       | =             | =                   | =
    cost         | 2           | 1         | 1            | =       | =             | =                   | =
    label        | 'l'         | nil       | nil          | =       | =             | =                   | =
    progress     | 'half'      | =         | nil          | nil     | nil           | =                   | =
    steps        | { 's' 'v' } | =         | nil          | nil     | nil           | =                   | nil
    started      | +60010      | =         | nil          | nil     | nil           | nil                 | =
    finished     | nil         | =         | =            | =       | =             | =                   | +60020
    result       | nil         | =         | =            | =       | =             | =                   | 'yes'
    every        | 60000       | =         | 70000        | =       | =             | nil                 | nil
    runs         | 0           | =         | =            | 1       | 1             | nil                 | nil
    occurrence   | +60000      | =         | +130020      | +120000 | +120000       | nil                 | nil
";

const BEGINNING: i64 = 4_000_000_000_000;

const OPTIONS: &str =
    "PRIORITY 4 TTR 5000 ATTEMPTS 3 TTL 900000 GROUP g KEEP 60000 COST 2 BACKOFF 2 1 10 LABEL l";

/// A job that is in its second attempt and has everything, and the token of that. `after`: the first one's delay.
fn held(after: i64, rule: &str) -> (Probe, u64) {
    let mut p = Probe::of(builder());
    p.run(&format!("DQ.CLOCK SET {BEGINNING}"));
    p.run("DQ.CFGSET q HISTORY 2 DONELEN 9");
    p.run(&format!("DQ.ADD q j load {rule} {OPTIONS}"));
    p.run(&format!("DQ.CLOCK ADVANCE {after}"));
    let first = p.pop_token("DQ.POP q");
    p.says(
        &format!("DQ.NACK q j TOKEN {first} DELAY 0 REASON why"),
        "'ready'",
    );
    p.run("DQ.CLOCK ADVANCE 10");
    let token = p.pop_token("DQ.POP q");
    p.run(&format!("DQ.TOUCH q j TOKEN {token} PROGRESS half"));
    p.run(&format!("DQ.STEP q j {token} s v"));
    (p, token)
}

/// As the columns say it: instants as what has passed, words of the history as names.
fn told(field: &str, value: &Reply, after: i64) -> String {
    let [first, second, third] = [after, after + 10, after + 20].map(|ms| BEGINNING + ms);
    let end = second + 5000;
    let entries = [
        ("FIRST", format!("[ 1 {first} {first} 'nacked' 'why' ]")),
        ("NACKED", format!("[ 2 {second} {third} 'nacked' 'other' ]")),
        ("TIMEOUT", format!("[ 2 {second} {end} 'timeout' nil ]")),
        ("FATAL", format!("[ 2 {second} {third} 'fatal' 'end' ]")),
    ];
    match value {
        Reply::Integer(ms) if *ms >= BEGINNING => format!("+{}", ms - BEGINNING),
        Reply::Bulk(_) if field == "token" => "now".to_owned(),
        other => entries
            .iter()
            .fold(show(other), |text, (name, entry)| text.replace(entry, name)),
    }
}

/// Compares one moment's column with the job as it is, and as it is after it was written and read.
#[track_caller]
fn compare(table: &str, moment: &str, p: &mut Probe, id: &str, after: i64) {
    let mut rows = table
        .trim()
        .lines()
        .map(|row| row.split('|').map(str::trim));
    let column = rows
        .next()
        .and_then(|mut head| head.position(|it| it == moment));
    let column = column.unwrap_or_else(|| panic!("no column {moment}"));
    for _ in 0..2 {
        let Reply::Map(fields) = p.run3(&format!("DQ.GET q {id}")) else {
            panic!("{moment}: no job {id}");
        };
        let fields: HashMap<String, Reply> = fields
            .into_iter()
            .map(|(name, value)| (plain(&name), value))
            .collect();
        for row in rows.clone() {
            let cells: Vec<&str> = row.collect();
            let expected = match cells[column] {
                "=" => cells[1],
                other => other,
            };
            let value = told(cells[0], &fields[cells[0]], after);
            assert_eq!(value, expected, "{} after {moment}", cells[0]);
        }
        p.run("DEBUG RELOAD");
    }
}

#[test]
fn of_a_job() {
    let moments: [(&str, &[&str]); 9] = [
        ("held", &[]),
        ("NACK", &["DQ.NACK q j TOKEN now DELAY 0 REASON other"]),
        (
            "TOUCH",
            &["DQ.TOUCH q j TOKEN now TTR 5000 PROGRESS more COST 7"],
        ),
        ("lease", &["DQ.CLOCK ADVANCE 4990"]),
        ("dead", &["DQ.NACK q j TOKEN now FATAL REASON end"]),
        (
            "kicked",
            &[
                "DQ.NACK q j TOKEN now FATAL REASON end",
                "DQ.KICK q IDS 1 j",
            ],
        ),
        ("done", &["DQ.ACK q RESULTS j now yes"]),
        (
            "run again",
            &["DQ.ACK q RESULTS j now yes", "DQ.KICK q IDS 1 j"],
        ),
        ("replaced", &["DQ.ADD q j new REPLACE"]),
    ];
    for (moment, commands) in moments {
        let (mut p, token) = held(0, "");
        if !commands.is_empty() {
            p.run("DQ.CLOCK ADVANCE 10");
        }
        for command in commands {
            p.run(&command.replace("now", &token.to_string()));
        }
        compare(OF_A_JOB, moment, &mut p, "j", 0);
    }
}

#[test]
fn of_a_rule() {
    const AFTER: i64 = 60_000;
    let copy = format!("j@{}", BEGINNING + AFTER);
    let moments = [
        ("held", "j", ""),
        ("same rule", "j", "DQ.ADD q j new REPLACE EVERY 60000"),
        ("another rule", "j", "DQ.ADD q j new REPLACE EVERY 70000"),
        ("next", "j", "DQ.ACK q RESULTS j now yes"),
        (
            "after a death",
            "j",
            "DQ.NACK q j TOKEN now FATAL REASON end",
        ),
        (
            "its dead one",
            &copy,
            "DQ.NACK q j TOKEN now FATAL REASON end",
        ),
        ("its done one", &copy, "DQ.ACK q RESULTS j now yes"),
    ];
    for (moment, id, command) in moments {
        let (mut p, token) = held(AFTER, "EVERY 60000");
        if !command.is_empty() {
            p.run("DQ.CLOCK ADVANCE 10");
            p.run(&command.replace("now", &token.to_string()));
        }
        compare(OF_A_RULE, moment, &mut p, id, AFTER);
    }
}
