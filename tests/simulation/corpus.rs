//! The fuzzer's harnesses over the inputs that it starts with, and over these damaged at random: all that can run without
//! a fuzzer. `make fuzz` continues from there.

use crate::hostile::{
    dump, effects, furnished_dumps, furnishing_effects, operations, Broken, SHAPES_WITH_COSTS,
    SHAPES_WITH_ENDS, SHAPES_WITH_GROUPS,
};
use crate::is_whole;
use crate::rng::Rng;
use crate::run::Sabotage;
use std::fs;
use std::path::PathBuf;

/// The histories that the fuzzer kept, each a line of hex digits.
fn kept_operations() -> Vec<Vec<u8>> {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fuzz/operations.hex");
    let text = fs::read_to_string(&file).unwrap_or_else(|_| panic!("{}", file.display()));
    let kept: Vec<Vec<u8>> = text.lines().map(of_hex).collect();
    assert!(kept.len() > 10, "hardly a corpus: {}", file.display());
    kept
}

fn of_hex(line: &str) -> Vec<u8> {
    let byte = |pair| std::str::from_utf8(pair).map(|pair| u8::from_str_radix(pair, 16));
    let bytes = line.as_bytes().chunks(2).map(byte);
    bytes.map(|it| it.unwrap().expect("hex digits")).collect()
}

/// Histories of some hundred operations each, with groups.
fn operations_of_groups() -> Vec<Vec<u8>> {
    operations_of(&SHAPES_WITH_GROUPS, 8)
}

/// Histories in which jobs are done and kept, or are after others.
fn operations_of_ends() -> Vec<Vec<u8>> {
    operations_of(&SHAPES_WITH_ENDS, 32)
}

/// Histories in which deliveries have costs.
fn operations_of_costs(count: usize) -> Vec<Vec<u8>> {
    operations_of(&SHAPES_WITH_COSTS, count)
}

fn operations_of(shapes: &[u8], count: usize) -> Vec<Vec<u8>> {
    let mut rng = Rng::new(0x6702);
    let mut history = |shape| {
        let choices = (0..4000).map(|_| rng.next() as u8);
        std::iter::once(shape).chain(choices).collect()
    };
    let shapes = shapes.iter().copied().cycle();
    shapes.take(count).map(&mut history).collect()
}

/// Changes, inserts or removes some bytes; sometimes replaces the tail by that of another input.
fn damaged(bytes: &[u8], others: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..rng.within(1, 6) {
        let at = rng.below(bytes.len() as u64 + 1) as usize;
        match rng.below(8) {
            0 => bytes.truncate(at),
            1 => {
                let other = rng.pick(others);
                bytes.truncate(at);
                bytes.extend(&other[rng.below(other.len() as u64 + 1) as usize..]);
            }
            2 => bytes.insert(at, rng.next() as u8),
            kind => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = match kind {
                        3 => byte.wrapping_add(1),
                        4 => *rng.pick(&[0, 1, 0x7f, 0x80, 0xff]),
                        5 => rng.next() as u8,
                        _ => *byte ^ 1 << rng.below(8),
                    };
                }
            }
        }
    }
    bytes
}

/// How often each input is damaged, of so many times.
fn of_times(times: u64) -> u64 {
    times / if is_whole() { 1 } else { 4 }
}

/// The first error over a corpus, each input unchanged and damaged so many times.
fn first_error(
    inputs: &[Vec<u8>],
    times: u64,
    mut harness: impl FnMut(&[u8]) -> Result<(), String>,
) -> Option<String> {
    let mut rng = Rng::new(0xf022);
    for input in inputs {
        for round in 0..=times {
            let bytes = match round {
                0 => input.clone(),
                _ => damaged(input, inputs, &mut rng),
            };
            if let Err(what) = harness(&bytes) {
                return Some(format!("{what}\nby the bytes \"{}\"", bytes.escape_ascii()));
            }
        }
    }
    None
}

#[track_caller]
fn holds(error: Option<String>) {
    if let Some(error) = error {
        panic!("{error}");
    }
}

#[test]
fn dumps_from_anybody() {
    holds(first_error(&furnished_dumps(), of_times(160), |bytes| {
        dump(bytes, Broken::Nothing)
    }));
}

#[test]
fn effects_from_anybody() {
    holds(first_error(&furnishing_effects(), of_times(75), |bytes| {
        effects(bytes, Broken::Nothing)
    }));
}

#[test]
fn operations_by_bytes() {
    let inputs = [
        kept_operations(),
        operations_of_groups(),
        operations_of_ends(),
        operations_of_costs(12),
    ]
    .concat();
    holds(first_error(&inputs, of_times(10), |bytes| {
        operations(bytes, Sabotage::Nothing)
    }));
}

/// tools/testing/fuzz.sh has them written for the fuzzer: what depends on the format is made, not kept.
#[test]
fn seeds_for_the_fuzzer() {
    let Some(folder) = std::env::var_os("DQ_SEEDS") else {
        return;
    };
    for (target, inputs) in [
        ("dump", furnished_dumps()),
        ("effects", furnishing_effects()),
        ("operations", kept_operations()),
    ] {
        let folder = PathBuf::from(&folder).join(target);
        fs::create_dir_all(&folder).expect("a folder");
        for (number, input) in inputs.iter().enumerate() {
            fs::write(folder.join(number.to_string()), input).expect("a file");
        }
    }
}

/// Only a nightly compiler builds the fuzzer, so its modules are compared here.
#[test]
fn the_fuzzer_has_all_modules_of_its_harness() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let list = fs::read_to_string(root.join("fuzz/src/lib.rs")).expect("a list");
    let lines = list.lines().map(|line| line.trim_start_matches("pub "));
    let has: Vec<&str> = lines.filter_map(|line| line.strip_prefix("mod ")).collect();
    let missing = |has: &[&str]| -> Vec<String> {
        let files = has.iter().map(|name| name.trim_end_matches(';'));
        let uses = files.flat_map(|name| {
            let file = root.join("tests/simulation").join(format!("{name}.rs"));
            let text = fs::read_to_string(file).unwrap_or_default();
            let uses = text
                .lines()
                .filter_map(|line| line.strip_prefix("use crate::"));
            let modules = uses.map(|path| path.split([':', ';']).next().expect("a name"));
            modules.map(|it| format!("{it};")).collect::<Vec<_>>()
        });
        uses.filter(|it| !has.contains(&it.as_str())).collect()
    };
    assert_eq!(missing(&has), [""; 0]);
    let less: Vec<&str> = has.iter().copied().filter(|it| *it != "ends;").collect();
    assert!(!missing(&less).is_empty());
}

/// The corpus must notice the planted faults, too.
#[test]
fn the_corpus_notices() {
    let noticed = |error: Option<String>, by: &str| {
        let error = error.unwrap_or_else(|| panic!("nothing is noticed: {by}"));
        let right = by.split('|').any(|by| error.contains(by));
        assert!(right, "noticed otherwise: {error}");
    };
    let (dumps, effect_lists) = (furnished_dumps(), furnishing_effects());
    let of_dumps = |broken| first_error(&dumps, 0, |bytes| dump(bytes, broken));
    noticed(
        of_dumps(Broken::Truncated),
        "what was written and read differs",
    );
    noticed(
        of_dumps(Broken::FollowerDeaf),
        "the follower differs|is refused",
    );
    let deaf = first_error(&effect_lists, 0, |bytes| {
        effects(bytes, Broken::FollowerDeaf)
    });
    noticed(deaf, "the follower differs|is refused");
    let of_groups = first_error(&operations_of_groups(), 0, |bytes| {
        operations(bytes, Sabotage::Model(crate::model::Fault::TurnSkipped))
    });
    noticed(of_groups, "the reply");
    let of_costs = first_error(&operations_of_costs(100), 0, |bytes| {
        operations(bytes, Sabotage::Model(crate::model::Fault::CostsIgnored))
    });
    noticed(
        of_costs,
        "the reply|a delivery succeeds now|rate-used|EXPLAIN",
    );
    for fault in [
        crate::model::Fault::OnDeadIgnored,
        crate::model::Fault::KeepForgotten,
    ] {
        let of_ends = first_error(&operations_of_ends(), 0, |bytes| {
            operations(bytes, Sabotage::Model(fault))
        });
        noticed(of_ends, "the reply|the ends|STATS");
    }
    let histories = kept_operations();
    for (sabotage, by) in [
        (Sabotage::ReplicaMisses, "replica differs"),
        (Sabotage::HiddenChange, "changed, but no effects"),
        (
            Sabotage::Model(crate::model::Fault::EarlyByOneMs),
            "the reply",
        ),
    ] {
        noticed(
            first_error(&histories, 0, |bytes| operations(bytes, sabotage)),
            by,
        );
    }
}
