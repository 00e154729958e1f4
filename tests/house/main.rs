//! The structure of the code: which part uses which. docs/architecture.md shows it.

mod circles;
mod clients;
mod generated;
mod graph;
mod imports;
mod map;
mod names;
mod same;

use circles::circles;
use graph::{floor, Arrows, House};
use std::fs;
use std::path::PathBuf;

/// From the bottom up: a part uses those below it.
const FLOORS: [&str; 7] = [
    "storage", "slots", "queue", "zones", "server", "commands", "",
];

/// All functions in `impl Queue`, the rules' and the state's, private ones too; only ever fewer.
const METHODS: usize = 200;

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn house() -> House {
    let root = root().join("src");
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
                files.push((name.to_owned(), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    House::of(files)
}

/// Arrows from a lower floor to a higher one.
fn upward(arrows: &Arrows) -> Vec<String> {
    let height = |room: &str| {
        let of = floor(room);
        let height = FLOORS.iter().position(|floor| *floor == of);
        height.unwrap_or_else(|| panic!("a floor without a place: {of}"))
    };
    let leads_up = arrows.iter().filter(|(from, to)| height(to) > height(from));
    leads_up
        .map(|(from, to)| format!("{from} -> {to}"))
        .collect()
}

/// A queue's state must know no rule: neither code that decides nor code that shows.
fn state_uses_rules(arrows: &Arrows) -> Vec<&str> {
    const STATE: &str = "queue/state";
    let is_rule = |room: &str| arrows.contains(&(room.to_owned(), STATE.to_owned()));
    let used = arrows
        .iter()
        .filter(|(from, to)| from == STATE && is_rule(to));
    used.map(|(_, to)| to.as_str()).collect()
}

#[test]
fn no_arrow_leads_upwards_and_none_in_a_circle() {
    let house = house();
    let arrows = house.arrows();
    println!("{:?}; {} arrows", house.lines(), arrows.len());
    for (from, to) in &arrows {
        println!("{from} -> {to}");
    }
    assert!(arrows.len() > 150, "{} arrows are not all", arrows.len());
    assert_eq!(upward(&arrows), Vec::<String>::new());
    assert_eq!(circles(&arrows), []);
    assert_eq!(state_uses_rules(&arrows), Vec::<&str>::new());
}

/// Where no files are in a circle, parts may be: if `store` uses `notes/table`, and `notes` uses `jobs`, which uses
/// `store`. So each file counts as one with its folder here, in every module.
#[test]
fn no_parts_are_in_a_circle() {
    let house = house();
    for holder in house.holders() {
        let arrows = house.arrows_below(holder);
        println!("{holder}: {} arrows between its parts", arrows.len());
        assert_eq!(circles(&arrows), [], "below {holder}");
    }
    assert!(house.arrows_below("queue/state").len() > 120);
    let made_up = [
        ("q/mod.rs", "struct Q(jobs::Jobs);"),
        ("q/jobs.rs", "use super::{store::Store, Q};"),
        ("q/store.rs", "use super::notes::Table;"),
        (
            "q/notes.rs",
            "mod table; pub(super) use table::Table; use super::jobs::Jobs;",
        ),
        ("q/notes/table.rs", ""),
    ];
    let made_up = House::of(made_up.map(|(file, text)| (file.to_owned(), text.to_owned())));
    let arrows = made_up.arrows_below("q");
    assert_eq!(circles(&arrows), [["jobs", "notes", "store"].into()]);
}

/// A queue is to be read part by part: what concerns one part alone is a method of that part.
#[test]
fn no_more_methods_are_on_queue() {
    let house = house();
    let methods = house.methods_of("Queue");
    let count: usize = methods.values().sum();
    println!(
        "{count} methods of Queue in {} files: {methods:?}",
        methods.len()
    );
    assert!(
        count <= METHODS,
        "{count} methods of Queue, at most {METHODS}"
    );
    assert!(METHODS - count < 5, "only {count}: lower METHODS to that");
    let more = "impl<'a> Queue {\n    pub fn f() {\n        g(|_: fn()| 1);\n    }\n    fn g() {}\n}\nfn h() {}";
    let made_up = House::of([("queue/made.rs".into(), more.into())]);
    assert_eq!(made_up.methods_of("Queue"), [("queue/made", 2)].into());
}

#[test]
fn what_should_not_be_is_noticed() {
    let with = |module: &str, code: &str| {
        let mut house = house();
        house.append(module, code);
        house.arrows()
    };
    let up = with("queue/add", "use crate::server::{clock, key::OpenKey};");
    assert_eq!(
        upward(&up),
        ["queue/add -> server/clock", "queue/add -> server/key"]
    );
    let inline = with(
        "server/blocked",
        "fn f() { crate::commands::bpop::reply() }",
    );
    assert_eq!(upward(&inline), ["server/blocked -> commands/bpop"]);
    let back = with("server/clock", "use super::worker;");
    let closed = &circles(&back)[0];
    assert!(closed.contains("server/clock") && closed.contains("server/worker"));
    let given_out = with("storage/slab", "fn f(_: crate::queue::Queue) {}");
    assert_eq!(upward(&given_out), ["storage/slab -> queue/state"]);
    let rule = with("queue/state/apply", "use crate::queue::expire;");
    assert_eq!(state_uses_rules(&rule), ["queue/expire"]);
    for silent in [
        "// use super::worker;",
        "#[cfg(test)]\nmod tests { use crate::server::worker; }",
    ] {
        let commented = House::of([
            ("server/clock.rs".into(), silent.into()),
            ("server/worker.rs".into(), String::new()),
        ]);
        assert!(commented.arrows().is_empty());
    }
}
