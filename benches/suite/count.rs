//! `make bench-count`: instructions and misses of the first instruction cache per command, held against what
//! was recorded. A figure that grew by more than its slack is an error; so a step back is seen in the change
//! that makes it, on any machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

use super::bench::PIPELINE;
use super::callgrind::{Counted, Counts, Processor};
use super::crowd::Crowd;
use super::host::{Host, SETTINGS};
use super::jobs::{dq, floor, id, payload, zset, Scripts};
use super::scratch::Scratch;
use super::wire::{encode, Connection};

/// Before anything is counted; and counted of each command.
const JOBS: usize = 5_000;
const COMMANDS: usize = 5_000;
/// Blocking and waking, one pair at a time.
const WAKES: usize = 500;
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
    let table = count(&mut counted);
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

fn count(counted: &mut Counted) -> Table {
    counted.host.load_floor();
    // Under Valgrind on a busy machine a minute can pass between POP and ACK.
    let reply = counted
        .host
        .call(&[b"CONFIG", b"SET", b"dq.default-ttr", b"3600000"]);
    assert_eq!(reply, b"+OK\r\n");
    let mut table = Table::new();
    count_piped(counted, &mut table);
    show_files(counted);
    count_wakes(counted, &mut table);
    count_with_aof(counted, &mut table);
    table
}

/// Among as many jobs as are added.
fn count_piped(counted: &mut Counted, table: &mut Table) {
    let scripts = &Scripts::load(&mut counted.host);
    let crowd = &mut Crowd::of_one(&counted.host);
    crowd.run((0, JOBS), PIPELINE, dq::add_far);
    crowd.run((0, JOBS), PIPELINE, zset::add_far);
    crowd.run((0, JOBS), PIPELINE, |out, n| scripts.add_far(out, n));
    let mut piped = |name: &str, write: &dyn Fn(&mut Vec<u8>, usize)| {
        let numbers = (JOBS, JOBS + COMMANDS);
        let counts = counted.during(|_| crowd.run(numbers, PIPELINE, write));
        table.insert(name.to_owned(), Figures::of(counts, COMMANDS));
    };
    piped("PING", &|out, _| encode(out, &[b"PING"]));
    piped(ADD, &dq::add_far);
    piped("FLOOR.ADD", &floor::add_far);
    piped("ZADD", &zset::add_far);
    piped("script of ZADD and HSET", &|out, n| scripts.add_far(out, n));
    // Those of before stay, far in the future; their ids are not these.
    let ready = |n: usize| n + COMMANDS;
    piped("DQ.ADD, ready", &|out, n| dq::add_ready(out, ready(n)));
    piped("DQ.POP", &dq::pop);
    piped("DQ.ACK", &|out, n| dq::ack(out, ready(n)));
    piped("FLOOR.POP", &floor::pop);
    piped("FLOOR.ACK", &floor::ack);
    count_steps(counted, crowd, table);
    count_long_steps(counted, crowd, table);
}

/// What someone reads who follows a plain job through the code.
fn show_files(counted: &mut Counted) {
    let numbers = (7 * COMMANDS, 8 * COMMANDS);
    let crowd = &mut Crowd::of_one(&counted.host);
    let mut files = counted.files_during(COMMANDS, |_| {
        crowd.run(numbers, PIPELINE, dq::add_ready);
        crowd.run(numbers, PIPELINE, |out, _| {
            encode(out, &[b"DQ.BPOP", b"dq", b"0"]);
        });
        crowd.run(numbers, PIPELINE, dq::ack);
    });
    files.sort();
    println!(
        "{} files have a part in a plain DQ.ADD, DQ.BPOP and DQ.ACK: {}",
        files.len(),
        files.join(" ")
    );
}

/// Of a job that somebody has: what keeps its lease, and what is kept with it.
fn count_steps(counted: &mut Counted, crowd: &mut Crowd, table: &mut Table) {
    let numbers = (0, COMMANDS);
    let id = |n: usize| id(n + 3 * COMMANDS);
    crowd.run(numbers, PIPELINE, |out, n| {
        dq::add_ready(out, n + 3 * COMMANDS);
    });
    crowd.run(numbers, PIPELINE, dq::pop);
    let mut client = counted.host.connect();
    let tokens: Vec<_> = (0..COMMANDS)
        .map(|n| token_of(&mut client, &id(n)))
        .collect();
    let mut piped = |name: &str, write: &dyn Fn(&mut Vec<u8>, usize)| {
        let counts = counted.during(|_| crowd.run(numbers, PIPELINE, write));
        table.insert(name.to_owned(), Figures::of(counts, COMMANDS));
    };
    piped("a lease kept by DQ.TOUCH", &|out, n| {
        encode(out, &[b"DQ.TOUCH", b"dq", &id(n), b"TOKEN", &tokens[n]]);
    });
    piped("64 bytes kept by DQ.STEP", &|out, n| {
        encode(
            out,
            &[
                b"DQ.STEP",
                b"dq",
                &id(n),
                &tokens[n],
                b"charge",
                &[b'v'; 64],
            ],
        );
    });
}

/// The last steps that a job may have, beside the first ones of others.
fn count_long_steps(counted: &mut Counted, crowd: &mut Crowd, table: &mut Table) {
    const MOST: usize = 1000;
    const COUNT: usize = 20;
    // Those of before stay, and those with an AOF are still to come.
    let far = |n: usize| n + 8 * COMMANDS;
    let id = |n: usize| id(far(n));
    let numbers = (0, COUNT + 1);
    crowd.run(numbers, 1, |out, n| dq::add_ready(out, far(n)));
    crowd.run(numbers, 1, dq::pop);
    let mut client = counted.host.connect();
    let tokens: Vec<_> = (0..=COUNT).map(|n| token_of(&mut client, &id(n))).collect();
    let step = |out: &mut Vec<u8>, job: usize, n: usize| {
        let name = format!("step-{n:03}");
        let (token, value) = (&tokens[job], [b'v'; 10_000]);
        encode(
            out,
            &[b"DQ.STEP", b"dq", &id(job), token, name.as_bytes(), &value],
        );
    };
    let first = counted.during(|_| crowd.run((0, COUNT), 1, |out, n| step(out, n, MOST - 1)));
    crowd.run((0, MOST - COUNT), 1, |out, n| step(out, COUNT, n));
    let numbers = (MOST - COUNT, MOST);
    let last = counted.during(|_| crowd.run(numbers, 1, |out, n| step(out, COUNT, n)));
    let [first, last] = [first, last].map(|counts| Figures::of(counts, COUNT));
    table.insert("10 KB by DQ.STEP, a job's first".to_owned(), first);
    table.insert("10 KB by DQ.STEP, its thousandth".to_owned(), last);
}

/// Of the current delivery.
fn token_of(client: &mut Connection, id: &[u8]) -> Vec<u8> {
    let job = client.call(&[b"DQ.GET", b"dq", id]);
    let mut lines = job.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    lines.find(|line| *line == b"token");
    lines.nth(1).expect("a token").to_vec()
}

/// Without what it costs to know that the client waits.
fn count_wakes(counted: &mut Counted, table: &mut Table) {
    let waits: [(&str, Wake); 3] = [
        ("of that alone", |_, producer, _| is_served(producer)),
        ("DQ.BPOP that waits, and its DQ.ADD", wake_by_dq),
        ("BZPOPMIN that waits, and its ZADD", wake_by_zset),
    ];
    let mut alone = None;
    for (name, wake) in waits {
        let (mut waiter, mut producer) = (counted.host.connect(), counted.host.connect());
        let mut wakes = |(first, end)| {
            for number in first..end {
                wake(&mut waiter, &mut producer, number);
            }
        };
        wakes((0, WAKES / 10));
        let counts = counted.during(|_| wakes((WAKES, 2 * WAKES)));
        let figures = Figures::of(counts, WAKES);
        let Some(alone) = alone else {
            alone = Some(figures);
            continue;
        };
        table.insert(name.to_owned(), figures.less(alone));
    }
}

/// A client is there before the job. The server reads two clients in no certain order, unless it has answered
/// the one after the other one has written.
type Wake = fn(waiter: &mut Connection, producer: &mut Connection, number: usize);

fn is_served(producer: &mut Connection) {
    producer.call(&[b"PING"]);
}

fn wake_by_dq(waiter: &mut Connection, producer: &mut Connection, number: usize) {
    waiter.send_command(&[b"DQ.BPOP", b"waited", b"0", b"NOACK"]);
    is_served(producer);
    producer.send_command(&[b"DQ.ADD", b"waited", &id(number), payload(number)]);
    waiter.receive_done(1);
    producer.receive_done(1);
}

fn wake_by_zset(waiter: &mut Connection, producer: &mut Connection, number: usize) {
    waiter.send_command(&[b"BZPOPMIN", b"zwaited", b"0"]);
    is_served(producer);
    producer.send_command(&[b"ZADD", b"zwaited", b"1", &id(number)]);
    waiter.receive_done(1);
    producer.receive_done(1);
}

/// The last: what reads effects once is taken to go on reading.
fn count_with_aof(counted: &mut Counted, table: &mut Table) {
    counted.host.keep_log();
    let crowd = &mut Crowd::of_one(&counted.host);
    let fresh = |n: usize| n + 3 * COMMANDS;
    let mut piped = |name: &str, write: &dyn Fn(&mut Vec<u8>, usize)| {
        let numbers = (JOBS, JOBS + COMMANDS);
        let counts = counted.during(|_| crowd.run(numbers, PIPELINE, write));
        table.insert(name.to_owned(), Figures::of(counts, COMMANDS));
    };
    piped("DQ.ADD, delayed, with an AOF", &|out, n| {
        dq::add_far(out, fresh(n))
    });
    piped("ZADD, with an AOF", &|out, n| zset::add_far(out, fresh(n)));
    piped("SET, with an AOF", &|out, n| {
        encode(out, &[b"SET", &id(n), payload(n)]);
    });
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
