//! `make bench-count`: instructions and misses of the first instruction cache per command, held against what
//! was recorded. A figure that grew by more than its slack is an error; so a step back is seen in the change
//! that makes it, on any machine.

mod commands;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

use super::bench::PIPELINE;
use super::callgrind::{Counted, Counts, Processor};
use super::crowd::Crowd;
use super::host::{Host, SETTINGS};
use super::jobs::dq;
use super::scratch::Scratch;

/// Before anything is counted; and counted of each command.
const JOBS: usize = 5_000;
const COMMANDS: usize = 5_000;
const SLACK: f64 = 1.03;
/// Another compiler makes other instructions of the same code.
const SLACK_OF_COMPILERS: f64 = 1.1;
/// Any change moves code, and what shares a place in the cache.
const SLACK_OF_MISSES: f64 = 1.15;

const ADD: &str = "DQ.ADD, delayed";

/// Per command.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Figures {
    instructions: f64,
    own: f64,
    misses: f64,
}

impl Figures {
    fn of(counts: Counts, count: usize) -> Figures {
        let each = |total: u64| total as f64 / count as f64;
        Figures {
            instructions: each(counts.instructions),
            own: each(counts.own),
            misses: each(counts.misses),
        }
    }

    fn halved(self) -> Figures {
        Figures {
            instructions: self.instructions / 2.0,
            own: self.own / 2.0,
            misses: self.misses / 2.0,
        }
    }

    fn less(self, other: Figures) -> Figures {
        Figures {
            instructions: self.instructions - other.instructions,
            own: self.own - other.own,
            misses: self.misses - other.misses,
        }
    }
}

type Table = BTreeMap<String, Figures>;

pub fn run(scratch: &Scratch, is_recording: bool) -> ExitCode {
    let module = &SETTINGS.get().expect("set by main").module;
    let mut counted = Counted::start(scratch.folder(), module, Processor::Plain);
    let about = about(&counted.host);
    let table = commands::count(&mut counted);
    print!("{}", text(&about, &table));
    let [first, last] = ["a job's first", "its thousandth"]
        .map(|which| table[&format!("10 KB by DQ.STEP, {which}")].instructions);
    assert!(
        last <= first * 1.3,
        "steps that cost more the more there are"
    );
    if is_recording {
        fs::write(record(), text(&about, &table)).expect("the record can be written");
        return ExitCode::SUCCESS;
    }
    let halved = |(name, it): (&String, &Figures)| {
        let recorded = if is_ours(name) { it.halved() } else { *it };
        (name.clone(), recorded)
    };
    let half = table.iter().map(halved).collect();
    let half = text(&about, &half);
    let canary = compare(&about, &table, &half);
    assert!(canary.is_err(), "twice as much was not noticed");
    let canary = compare(&about, &elsewhere(&table), &half);
    assert!(canary.is_err(), "nor on another processor");
    let canary = compare("another server and compiler", &table, &half);
    assert!(canary.is_err(), "nor by another compiler");
    let recorded = fs::read_to_string(record()).expect("benches/counts.txt");
    drop(counted);
    check_other_processor(scratch, module, &table);
    if env::consts::ARCH != "x86_64" {
        println!("not compared: recorded on x86_64");
        return ExitCode::SUCCESS;
    }
    match compare(&about, &table, &recorded) {
        Ok(verdict) => {
            println!("{verdict}");
            ExitCode::SUCCESS
        }
        Err(grown) => {
            eprintln!("{grown}");
            ExitCode::FAILURE
        }
    }
}

/// As another processor counts, whose C library copies and compares by other functions.
fn elsewhere(table: &Table) -> Table {
    let counted = |(name, it): (&String, &Figures)| {
        let instructions = it.instructions * 1.05;
        (
            name.clone(),
            Figures {
                instructions,
                ..*it
            },
        )
    };
    table.iter().map(counted).collect()
}

/// The module's own instructions are what they were, where the C library chooses its functions for this processor.
fn check_other_processor(scratch: &Scratch, module: &Path, table: &Table) {
    let mut counted = Counted::start(scratch.folder(), module, Processor::OfMachine);
    let crowd = &mut Crowd::of_one(&counted.host);
    crowd.run((0, JOBS), PIPELINE, dq::add_far);
    let numbers = (JOBS, JOBS + COMMANDS);
    let counts = counted.during(|_| crowd.run(numbers, PIPELINE, dq::add_far));
    let (here, plain) = (Figures::of(counts, COMMANDS), table[ADD]);
    println!(
        "{ADD}, nothing hidden of the processor: {:.0}, {:.0} the module's",
        here.instructions, here.own
    );
    let (less, more) = (here.own.min(plain.own), here.own.max(plain.own));
    assert!(
        more <= less * SLACK,
        "the module's own instructions depend on the processor"
    );
}

/// Builds with a profile have a record of their own.
fn record() -> PathBuf {
    let name = if has_profile() {
        "benches/counts-pgo.txt"
    } else {
        "benches/counts.txt"
    };
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn has_profile() -> bool {
    env::var_os("DQ_PGO").is_some_and(|value| !value.is_empty())
}

/// What the figures depend on, but for our code.
fn about(host: &Host) -> String {
    let compiler = env::var_os("RUSTC").unwrap_or("rustc".into());
    let said = Command::new(compiler).arg("--version").output();
    let said = said.expect("a compiler").stdout;
    let compiler = String::from_utf8(said).expect("it says its version in words");
    let build = if has_profile() { "pgo" } else { "plain" };
    format!(
        "server {}, {}, {build} build",
        host.version(),
        compiler.trim()
    )
}

fn text(about: &str, table: &Table) -> String {
    let mut text = format!(
        "# {about}\n# {:38} {:>12} {:>12} {:>12}\n",
        "per command", "instructions", "the module's", "L1i misses"
    );
    for (name, figures) in table {
        let Figures {
            instructions,
            own,
            misses,
        } = figures;
        text += &format!("{name:40} {instructions:12.0} {own:12.0} {misses:12.0}\n");
    }
    text
}

fn parse(text: &str) -> Table {
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let row = |line: &str| {
        let (rest, misses) = last_number(line)?;
        let (rest, own) = last_number(rest)?;
        let (name, instructions) = last_number(rest)?;
        let figures = Figures {
            instructions,
            own,
            misses,
        };
        Some((name.to_owned(), figures))
    };
    rows.filter_map(row).collect()
}

fn last_number(line: &str) -> Option<(&str, f64)> {
    let (rest, number) = line.trim_end().rsplit_once(' ')?;
    Some((rest.trim_end(), number.parse().ok()?))
}

fn is_ours(name: &str) -> bool {
    name.starts_with("DQ.")
}

/// Another processor may have its C library copy and compare by other instructions: then these take another
/// number of them too.
const NOT_OURS: [&str; 2] = ["PING", "ZADD"];

fn counts_otherwise(table: &Table, recorded: &Table) -> Option<String> {
    let instructions = |of: &Table, name| of.get(name).map_or(0.0, |it| it.instructions);
    let both = NOT_OURS.map(|name| {
        let (is, was) = (instructions(table, name), instructions(recorded, name));
        (name, is, was)
    });
    let differs = |&(_, is, was): &(_, f64, f64)| is > was * SLACK || was > is * SLACK;
    let (name, is, was) = both.into_iter().find(differs)?;
    Some(format!(
        "{name} takes {is:.0} instructions here, recorded {was:.0}"
    ))
}

/// Of our commands; the others are there to be compared with. The module's own instructions are compared
/// everywhere; all together, and misses, only where the server's and the C library's are as they were.
fn compare(about: &str, table: &Table, recorded: &str) -> Result<String, String> {
    let first = recorded.lines().next().unwrap_or_default();
    let is_alike = first == format!("# {about}");
    let recorded = parse(recorded);
    let otherwise = match is_alike {
        true => counts_otherwise(table, &recorded),
        false => Some(format!("recorded with {first}")),
    };
    let slack_of_own = if is_alike { SLACK } else { SLACK_OF_COMPILERS };
    let compared = if otherwise.is_some() { 1 } else { 3 };
    let mut grown = String::new();
    for (name, figures) in table.iter().filter(|(name, _)| is_ours(name)) {
        let Some(before) = recorded.get(name) else {
            grown += &format!("{name}: not recorded\n");
            continue;
        };
        let each = [
            ("the module's own", figures.own, before.own, slack_of_own),
            (
                "instructions",
                figures.instructions,
                before.instructions,
                SLACK,
            ),
            ("L1i misses", figures.misses, before.misses, SLACK_OF_MISSES),
        ];
        for &(what, is, was, slack) in &each[..compared] {
            if is > was * slack {
                grown += &format!("{name}, {what}: {is:.0}, recorded {was:.0}\n");
            }
        }
    }
    if !grown.is_empty() {
        return Err(format!(
            "{grown}If that is meant: make bench-count RECORD=1, and say why in the change."
        ));
    }
    let percent = |slack: f64| (slack - 1.0) * 100.0;
    Ok(match otherwise {
        Some(otherwise) => format!(
            "none of the module's own grew by more than {:.0} %; the rest is not compared: {otherwise}",
            percent(slack_of_own)
        ),
        None => format!(
            "none grew by more than {:.0} %, misses by {:.0} %",
            percent(SLACK),
            percent(SLACK_OF_MISSES)
        ),
    })
}
