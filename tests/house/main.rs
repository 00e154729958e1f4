//! The structure of the code: which part uses which. docs/architecture.md shows it.

mod clients;
mod fatal;
mod fields;
mod graph;
mod map;
mod names;
mod same;
mod written;

use graph::{floor, Arrows, House};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

/// From the bottom up: a part uses those below it.
const FLOORS: [&str; 7] = [
    "storage", "slots", "queue", "zones", "server", "commands", "",
];

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

/// A circle of arrows, if there is one.
fn circle(arrows: &Arrows) -> Option<String> {
    let mut uses: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in arrows {
        uses.entry(from).or_default().push(to);
    }
    let mut done = BTreeSet::new();
    let rooms: Vec<&str> = uses.keys().copied().collect();
    rooms
        .into_iter()
        .find_map(|room| walk(room, &uses, &mut Vec::new(), &mut done))
}

fn walk<'a>(
    room: &'a str,
    uses: &BTreeMap<&'a str, Vec<&'a str>>,
    way: &mut Vec<&'a str>,
    done: &mut BTreeSet<&'a str>,
) -> Option<String> {
    if let Some(begin) = way.iter().position(|before| *before == room) {
        return Some([&way[begin..], &[room]].concat().join(" -> "));
    }
    if done.contains(room) {
        return None;
    }
    way.push(room);
    let next = uses.get(room).into_iter().flatten();
    let found = next.copied().find_map(|next| walk(next, uses, way, done));
    way.pop();
    done.insert(room);
    found
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
    assert_eq!(circle(&arrows), None);
    assert_eq!(state_uses_rules(&arrows), Vec::<&str>::new());
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
    assert!(circle(&back).is_some_and(|way| way.contains("server/clock -> server/worker")));
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
