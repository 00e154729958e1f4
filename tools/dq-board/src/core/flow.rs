//! The jobs around one as columns: to its left the jobs it is after, to its right the jobs after it.

use std::collections::{BTreeMap, HashMap, HashSet};

/// Jobs of a column that are shown one by one; the others are counted by state.
const SHOWN: usize = 10;
/// Columns to each side.
pub const LEVELS: i32 = 3;

pub type Id = Vec<u8>;

/// Which job is after which, by ids.
#[derive(Default)]
pub struct Edges {
    before: HashMap<Id, Vec<Id>>,
    behind: HashMap<Id, Vec<Id>>,
}

impl Edges {
    pub fn add(&mut self, before: &Id, behind: &Id) {
        let known = self.before.entry(behind.clone()).or_default();
        if !known.contains(before) {
            known.push(before.clone());
            let behinds = self.behind.entry(before.clone()).or_default();
            behinds.push(behind.clone());
        }
    }

    pub fn before(&self, id: &Id) -> &[Id] {
        self.before.get(id).map_or(&[], Vec::as_slice)
    }

    pub fn behind(&self, id: &Id) -> &[Id] {
        self.behind.get(id).map_or(&[], Vec::as_slice)
    }
}

#[derive(Debug, PartialEq)]
pub struct Column {
    pub level: i32,
    pub shown: Vec<Id>,
    /// Jobs that are not shown, by state.
    pub more: BTreeMap<String, usize>,
}

/// The columns around a job, from left to right.
pub fn columns(id: &Id, edges: &Edges, state: impl Fn(&Id) -> String) -> Vec<Column> {
    let mut columns = vec![Column {
        level: 0,
        shown: vec![id.clone()],
        more: BTreeMap::new(),
    }];
    for side in [-1, 1] {
        let mut seen: HashSet<&Id> = HashSet::from([id]);
        let mut last = vec![id];
        for distance in 1..=LEVELS {
            let next = |it: &&Id| match side {
                -1 => edges.before(it),
                _ => edges.behind(it),
            };
            let here = last.iter().flat_map(|it| next(it).iter());
            let here: Vec<&Id> = here.filter(|it| seen.insert(it)).collect();
            if here.is_empty() {
                break;
            }
            columns.push(column(side * distance, &here, &state));
            last = here;
        }
    }
    columns.sort_by_key(|column| column.level);
    columns
}

/// Jobs in trouble come first, then those under way, then those that have ended.
fn column(level: i32, ids: &[&Id], state: impl Fn(&Id) -> String) -> Column {
    const ORDER: [&str; 8] = [
        "dead", "reserved", "ready", "delayed", "blocked", "done", "gone", "unknown",
    ];
    let mut all: Vec<(usize, &Id, String)> = Vec::with_capacity(ids.len());
    for id in ids {
        let state = state(id);
        let place = ORDER.iter().position(|it| *it == state);
        all.push((place.unwrap_or(ORDER.len()), *id, state));
    }
    all.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
    let rest = all.split_off(all.len().min(SHOWN));
    let mut more = BTreeMap::new();
    for (_, _, state) in rest {
        *more.entry(state).or_default() += 1;
    }
    Column {
        level,
        shown: all.into_iter().map(|(_, id, _)| id.clone()).collect(),
        more,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> Id {
        text.as_bytes().to_vec()
    }

    #[test]
    fn many_are_counted_and_trouble_comes_first() {
        let mut edges = Edges::default();
        for number in 0..1000 {
            edges.add(&id(&format!("job-{number:03}")), &id("sum"));
        }
        edges.add(&id("sum"), &id("mail"));
        edges.add(&id("sum"), &id("mail"));
        let state = |it: &Id| match it.as_slice() {
            b"job-777" => "dead".to_owned(),
            b"mail" => "blocked".to_owned(),
            _ => "done".to_owned(),
        };
        let columns = columns(&id("sum"), &edges, state);
        let levels: Vec<i32> = columns.iter().map(|it| it.level).collect();
        assert_eq!(levels, [-1, 0, 1]);
        assert_eq!(columns[0].shown.len(), SHOWN);
        assert_eq!(columns[0].shown[0], id("job-777"));
        assert_eq!(columns[0].more["done"], 1000 - SHOWN);
        assert_eq!(columns[2].shown, [id("mail")]);
    }

    #[test]
    fn a_job_on_several_ways_stands_once_and_far_ones_are_left_out() {
        let mut edges = Edges::default();
        for (before, behind) in [
            ("a", "b"),
            ("a", "c"),
            ("b", "d"),
            ("c", "d"),
            ("d", "e"),
            ("e", "f"),
        ] {
            edges.add(&id(before), &id(behind));
        }
        let columns = columns(&id("a"), &edges, |_| "blocked".to_owned());
        let shown: Vec<usize> = columns.iter().map(|it| it.shown.len()).collect();
        assert_eq!(shown, [1, 2, 1, 1]);
    }
}
