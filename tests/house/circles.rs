//! Circles of files, in src, the programs and the libraries: there are none.
//!
//! Files are in a circle if each leads to each over the arrows of imports.rs. A module and its own parts (a `mod`, or
//! Python's `__init__.py`, and the files below it) make no circle by themselves: a file that in a circle is tied to its
//! holder or its part alone is left out, and so is a circle in which all arrows are between holders and parts. But what
//! goes through a holder counts: if the part `a` uses `b`, both use their holder and it uses them, then these three are a
//! circle. It opens when `a` and `b` use what is below both instead of their holder, or each knows only the holder.
//! In Java, whose packages have no parts, the builder of a class is its part, and so is an implementation that bears its
//! interface's name: `WorkerBuilder`, `JsonCodec`.
//!
//! In a circle, files stand in the order of how many of the others they use more than use them. An arrow to a file that
//! stands higher runs up (holders and parts apart): about so many are to be cut for the circle to open.

use crate::graph::{is_below, Arrows};
use crate::imports::{self, Files};
use std::collections::{BTreeMap, BTreeSet};

/// So many arrows are found, at least.
const LEAST: [(&str, usize); 6] = [
    ("src", 1300),
    ("clients/go", 180),
    ("clients/java", 400),
    ("clients/node", 290),
    ("clients/python", 290),
    ("clients/rust", 260),
];

type Circle<'a> = BTreeSet<&'a str>;

/// What a file's own parts are below.
fn held_by(file: &str) -> Option<&str> {
    let roots = ["/lib", "/main", "/mod"];
    let module = match file.strip_suffix(".rs") {
        Some(module) => roots
            .iter()
            .find_map(|root| module.strip_suffix(root))
            .or(Some(module)),
        None => file.strip_suffix("/__init__.py"),
    };
    module
}

fn is_javas_part(part: &str, holder: &str) -> bool {
    let is_named_so = |part: &str, holder: &str| {
        let (folder, name) = holder.rsplit_once('/')?;
        let part = part.strip_prefix(folder)?.strip_prefix('/')?;
        Some(part != name && part.ends_with(name) || part == format!("{name}Builder"))
    };
    let names = part.strip_suffix(".java").zip(holder.strip_suffix(".java"));
    names.and_then(|(part, holder)| is_named_so(part, holder)) == Some(true)
}

fn is_own_part(one: &str, other: &str) -> bool {
    let holds = |holder, part| {
        held_by(holder).is_some_and(|module| is_below(part, module)) || is_javas_part(part, holder)
    };
    holds(one, other) || holds(other, one)
}

fn reached<'a>(from: &'a str, uses: &BTreeMap<&'a str, Vec<&'a str>>) -> Circle<'a> {
    let (mut reached, mut next) = (Circle::new(), vec![from]);
    while let Some(file) = next.pop() {
        let used = uses.get(file).into_iter().flatten();
        next.extend(used.filter(|used| reached.insert(used)));
    }
    reached
}

pub fn circles(arrows: &Arrows) -> Vec<Circle<'_>> {
    let mut uses: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in arrows {
        uses.entry(from).or_default().push(to);
    }
    let reach: BTreeMap<&str, Circle> = uses.keys().map(|it| (*it, reached(it, &uses))).collect();
    let (mut circles, mut placed) = (Vec::new(), Circle::new());
    for (file, reached) in &reach {
        let leads_back = |other: &&str| reach.get(other).is_some_and(|reach| reach.contains(file));
        let mut circle: Circle = reached.iter().copied().filter(leads_back).collect();
        if !circle.contains(file) || !placed.is_disjoint(&circle) {
            continue;
        }
        placed.extend(&circle);
        while let Some(leaf) = circle
            .iter()
            .copied()
            .find(|file| is_leaf(file, &circle, arrows))
        {
            circle.remove(leaf);
        }
        if within(&circle, arrows).any(|(from, to)| !is_own_part(from, to)) {
            circles.push(circle);
        }
    }
    circles
}

fn within<'a>(circle: &'a Circle, arrows: &'a Arrows) -> impl Iterator<Item = (&'a str, &'a str)> {
    let arrows = arrows.iter().map(|(from, to)| (&**from, &**to));
    arrows.filter(|(from, to)| circle.contains(from) && circle.contains(to))
}

/// Whether only its holder, or one of its parts, ties it to the circle.
fn is_leaf(file: &str, circle: &Circle, arrows: &Arrows) -> bool {
    let of = within(circle, arrows).filter(|(from, to)| [from, to].contains(&&file));
    let others: Circle = of
        .map(|(from, to)| if from == file { to } else { from })
        .collect();
    others.len() == 1 && others.iter().all(|other| is_own_part(file, other))
}

fn up(circle: &Circle, arrows: &Arrows) -> Vec<String> {
    let height = |file: &str| {
        let uses = |(from, to)| i32::from(from == file) - i32::from(to == file);
        (
            within(circle, arrows).map(uses).sum::<i32>(),
            file.to_owned(),
        )
    };
    let up = within(circle, arrows)
        .filter(|(from, to)| !is_own_part(from, to) && height(to) > height(from));
    up.map(|(from, to)| format!("{from} -> {to}")).collect()
}

/// How many files are in circles when holders and their parts are not tied.
fn apart(arrows: &Arrows) -> usize {
    let apart = arrows.iter().filter(|(from, to)| !is_own_part(from, to));
    circles(&apart.cloned().collect())
        .iter()
        .map(BTreeSet::len)
        .sum()
}

#[test]
fn no_files_are_in_a_circle() {
    let mut found = 0;
    for ((room, ending), files) in imports::all() {
        let arrows = imports::arrows(ending, &files);
        let circles = circles(&arrows);
        let (mut inside, mut cut) = (0, 0);
        for circle in circles {
            let up = up(&circle, &arrows);
            println!("{circle:?}\n    up: {up:?}");
            inside += circle.len();
            cut += up.len();
        }
        found += inside;
        println!(
            "{room} .{ending}: {} files, {} arrows; {inside} files in circles ({} without arrows between \
             holders and parts), {cut} arrows up",
            files.len(), arrows.len(), apart(&arrows),
        );
        let least = LEAST.iter().find(|(name, _)| *name == room);
        assert!(
            arrows.len() >= least.map_or(0, |it| it.1),
            "not all arrows of {room}"
        );
    }
    assert_eq!(found, 0, "files are in circles");
}

/// The circle among made-up files, each a path and its text.
fn made_up(files: &str) -> String {
    let files = files
        .split(" | ")
        .map(|file| file.split_once(": ").expect("a path"));
    let files: Files = files
        .map(|(file, text)| (file.to_owned(), format!("\n{text}\n")))
        .collect();
    let ending = files.keys().next().and_then(|file| file.rsplit('.').next());
    let arrows = imports::arrows(ending.expect("an ending"), &files);
    let files = circles(&arrows).into_iter().flatten();
    let names = files.map(|file| file.rsplit('/').next().unwrap_or(file));
    names.collect::<Vec<_>>().join(" ")
}

#[test]
fn circles_are_noticed() {
    for (files, expected) in [
        (
            "src/lib.rs: mod a; | src/a.rs: use crate::b::B; | src/b.rs: fn f() { super::a::A::new() }",
            "a.rs b.rs",
        ),
        ("x/src/main.rs: struct M; fn main() { a::f() } | x/src/a.rs: use crate::M;", ""),
        // Through what a holder has, but not through what it gives out.
        (
            "src/q/mod.rs: struct Q(a::A); | src/q/a.rs: use super::{b::B, Q}; | src/q/b.rs: use super::Q;",
            "a.rs b.rs mod.rs",
        ),
        (
            "src/q/mod.rs: pub(super) use a::A; | src/q/a.rs: use super::b::B; | src/q/b.rs: // super::A",
            "",
        ),
        (
            "src/q.rs: use a::A; type Q = b::B; | src/q/a.rs: use super::b::B; | src/q/b.rs: use super::A;",
            "a.rs b.rs",
        ),
        (
            "src/a.rs: use crate::b; | src/b.rs: #[cfg(test)]\nmod c; | src/b/c.rs: use crate::a;",
            "",
        ),
        (
            "g/a.go: func one() {\n\treturn two(1)\n} | g/b.go: const (\n\tnone = 1\n\ttwo, three = 2, one\n)",
            "a.go b.go",
        ),
        (
            "g/a.go: func one(two int) { b.two(); t{two: 1} }\nfunc (t T) two() {} | g/b.go: var two = one",
            "",
        ),
        (
            "g/a.go: func one() {\n\ttwo := f(1)\n} | g/b.go: type two struct {\n\tone, up int\n}\nvar x = one",
            "",
        ),
        (
            "j/io/A.java: package io;\nclass A extends B {} | j/io/B.java: package io;\nimport io.x.C; | \
             j/io/x/C.java: package io.x;\nimport static io.A.*;",
            "A.java B.java C.java",
        ),
        (
            "j/A.java: class A { class B {} B b; } | j/B.java: A a; // B",
            "",
        ),
        (
            "j/A.java: sealed class A permits B { } | j/B.java: class B extends A",
            "",
        ),
        (
            "j/A.java: A(ABuilder b) { BA.it() } | j/ABuilder.java: return new A(this) | j/BA.java: class BA implements A",
            "",
        ),
        (
            "j/A.java: A(ABuilder b) {} | j/ABuilder.java: return new C() | j/C.java: class C extends A",
            "A.java ABuilder.java C.java",
        ),
        (
            "n/a.ts: import type { B } from '../n/b.js'; | n/b.ts: export * from './a.js';",
            "a.ts b.ts",
        ),
        (
            "n/a.js: import { b } from \"./b.js\"; | n/b.js: import(\"./a.js\")",
            "a.js b.js",
        ),
        (
            "p/a.py: if T:\n    from . import (\n        b as it,\n    ) | p/b.py: from .a import A",
            "a.py b.py",
        ),
        ("p/__init__.py: from .a import A | p/a.py: from . import VERSION", ""),
    ] {
        assert_eq!(made_up(files), expected, "{files}");
    }
}

#[test]
fn no_java_packages_are_in_a_circle() {
    let java = imports::all().remove(&("clients/java".into(), "java"));
    let arrows = imports::arrows("java", &java.expect("Java's")).into_iter();
    let folder = |file: String| file.rsplit_once('/').expect("in a folder").0.to_owned();
    let mut arrows: Arrows = arrows
        .map(|(from, to)| (folder(from), folder(to)))
        .collect();
    arrows.retain(|(from, to)| from != to);
    assert!(arrows.len() > 1);
    assert_eq!(circles(&arrows), []);
}
