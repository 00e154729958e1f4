//! What is measured, and the order of it.

mod bench;
mod callgrind;
mod crowd;
mod host;
mod jobs;
mod machine;
mod plan;
mod report;
mod rounds;
mod scratch;
mod stats;
mod wire;

mod commands;
mod count;
mod done;
mod durable;
mod flows;
mod groups;
mod growth;
mod heartbeat;
mod idle;
mod lateness;
mod many;
mod million;
mod outcomes;
mod pings;
mod queues;
mod scale;
mod sizes;
mod snapshot;
mod stall;
mod timeouts;
mod train;
mod wake;

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use std::{env, fs};

use crate::support::locate;
use host::{Host, Settings, SETTINGS};
use machine::Cores;
use plan::{Plan, FULL, QUICK};
use report::Part;
use scratch::Scratch;

type Subject = (&'static str, fn(Plan) -> Part);

const SUBJECTS: [Subject; 15] = [
    ("commands", commands::measure),
    ("many", many::measure),
    ("million", million::measure),
    ("heartbeat", heartbeat::measure),
    ("lateness", lateness::measure),
    ("stall", stall::measure),
    ("growth", growth::measure),
    ("idle", idle::measure),
    ("sizes", sizes::measure),
    ("wake", wake::measure),
    ("outcomes", outcomes::measure),
    ("timeouts", timeouts::measure),
    ("snapshot", snapshot::measure),
    ("durable", durable::measure),
    ("queues", queues::measure),
];

/// What takes longest, in a run of its own.
const LARGE: [Subject; 6] = [
    ("flows", flows::measure),
    ("done", done::measure),
    ("pings", pings::measure),
    ("scale", scale::measure),
    ("groups", groups::measure),
    ("shares", groups::shares::measure),
];

/// What takes most of a machine's memory: only where it is named.
const HUGE: [Subject; 2] = [
    ("huge", scale::huge::measure),
    ("huge-pair", scale::huge::measure_pair),
];

const OPTIONS: [&str; 5] = ["--quick", "--large", "--count", "--record", "--train"];

struct Wanted {
    is_quick: bool,
    /// Of the large subjects, rather than of the others.
    is_large: bool,
    /// Instructions instead of times; what is counted is recorded, or held against the record.
    is_counting: bool,
    is_recording: bool,
    /// Nothing is measured: the module writes a profile of itself.
    is_training: bool,
    subjects: Vec<Subject>,
}

impl Wanted {
    /// Options and names; cargo adds a `--bench` of its own.
    fn from_arguments() -> Result<Wanted, String> {
        let words: Vec<String> = env::args().skip(1).filter(|it| it != "--bench").collect();
        let (options, names): (Vec<_>, Vec<_>) = words.iter().partition(|it| it.starts_with('-'));
        let all = || SUBJECTS.into_iter().chain(LARGE).chain(HUGE);
        let known: Vec<&str> = all().map(|it| it.0).collect();
        let is_unknown = |name: &&&String| !known.contains(&name.as_str());
        let unknown = options.iter().find(|it| !OPTIONS.contains(&it.as_str()));
        if let Some(word) = unknown.or(names.iter().find(is_unknown)) {
            return Err(format!(
                "{word}? There are {} and {}",
                OPTIONS.join(", "),
                known.join(", ")
            ));
        }
        let has = |option: &str| options.iter().any(|it| *it == option);
        let by_default = subjects_of(has("--large"));
        let is_wanted = |(name, _): &Subject| match names.is_empty() {
            true => by_default.iter().any(|it| it.0 == *name),
            false => names.iter().any(|it| it == name),
        };
        Ok(Wanted {
            is_quick: has("--quick"),
            is_large: has("--large"),
            is_counting: has("--count"),
            is_recording: has("--record"),
            is_training: has("--train"),
            subjects: all().filter(is_wanted).collect(),
        })
    }
}

fn subjects_of(is_large: bool) -> &'static [Subject] {
    if is_large {
        &LARGE
    } else {
        &SUBJECTS
    }
}

pub fn run() -> ExitCode {
    // `cargo test --all-targets` runs it without.
    if !env::args().any(|it| it == "--bench") {
        eprintln!("To measure: make bench");
        return ExitCode::SUCCESS;
    }
    match Wanted::from_arguments() {
        Ok(wanted) => measure(&wanted),
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn measure(wanted: &Wanted) -> ExitCode {
    let scratch = Scratch::new();
    let module = locate::module_path();
    let machine = machine::description();
    let cores = Cores::find();
    let settings = Settings {
        cores,
        module: scratch.copy(&module),
        floor: env::var_os("DQ_FLOOR").map(|path| scratch.copy(Path::new(&path))),
    };
    assert!(SETTINGS.set(settings).is_ok(), "set once");
    if let Some(cores) = cores {
        machine::pin(cores.client);
    }
    if wanted.is_counting {
        return count::run(&scratch, wanted.is_recording);
    }
    if wanted.is_training {
        return train::run();
    }
    let about = about(wanted, machine, cores, &module);
    let plan = if wanted.is_quick { QUICK } else { FULL };
    let parts = measure_all(&wanted.subjects, plan);
    let text: Vec<String> = about
        .iter()
        .map(|(name, it)| format!("{name}: {it}\n"))
        .collect();
    let text = format!("{}\n{}", text.concat(), report::table(&parts));
    print!("\n{text}");
    let json = report::json(&about, &parts);
    keep(wanted, &json);
    match parts.len() == wanted.subjects.len() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// A subject that fails says why, and leaves the others alone.
fn measure_all(subjects: &[Subject], plan: Plan) -> Vec<(&'static str, Part)> {
    let mut parts = Vec::new();
    for &(name, measure) in subjects {
        let start = Instant::now();
        match catch_unwind(|| measure(plan)) {
            Ok(part) => parts.push((name, part)),
            Err(_) => eprintln!("{name} could not be measured"),
        }
        eprintln!("{name}: {:.1} s", start.elapsed().as_secs_f64());
    }
    parts
}

fn about(
    wanted: &Wanted,
    machine: String,
    cores: Option<Cores>,
    module: &Path,
) -> Vec<(&'static str, String)> {
    let pinned = match cores {
        Some(Cores { client, server }) => {
            format!("client on core {client}, servers on core {server}")
        }
        None => "one core for client and servers: no figure here is to be trusted".to_owned(),
    };
    vec![
        ("machine", format!("{machine}; {pinned}")),
        ("server", Host::start().version()),
        ("module", module.display().to_string()),
        (
            "mode",
            if wanted.is_quick { "quick" } else { "full" }.to_owned(),
        ),
    ]
}

/// What was measured in part, or quickly, does not take the place of a full run.
fn keep(wanted: &Wanted, json: &str) {
    let kind = if wanted.is_large { "scale" } else { "bench" };
    let all = subjects_of(wanted.is_large).iter().map(|it| it.0);
    let is_whole = wanted.subjects.iter().map(|it| it.0).eq(all);
    let name = match (is_whole, wanted.is_quick) {
        (true, false) => format!("{kind}.json"),
        (true, true) => format!("{kind}-quick.json"),
        (false, _) => format!("{kind}-part.json"),
    };
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench");
    let folder = env::var_os("DQ_BENCH_OUT").map_or(target, PathBuf::from);
    let path = folder.join(name);
    let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&path, json));
    match written {
        Ok(()) => println!("\nThe same, with all rounds: {}", path.display()),
        Err(error) => eprintln!("{}: {error}", path.display()),
    }
}
