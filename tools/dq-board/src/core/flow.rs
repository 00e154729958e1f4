//! The jobs around one as columns: to its left the jobs it is after, to its right the jobs after it.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

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
const ORDER: [&str; 8] = [
    "dead", "reserved", "ready", "delayed", "blocked", "done", "gone", "unknown",
];

/// Where jobs stand of which some beginnings are not known: `forward` is the longest known way to each, in an order in
/// which each job comes after all it is after. A done job no longer says what it was after: it stands beside the others
/// that its waiters wait for, and what is after such jobs alone follows them.
fn stages<'a>(
    order: &[&'a Id],
    edges: &'a Edges,
    is_done: impl Fn(&Id) -> bool,
) -> HashMap<&'a Id, usize> {
    let there: HashSet<&Id> = order.iter().copied().collect();
    let around = |ids: &'a [Id]| ids.iter().filter(|it| there.contains(it));
    let longest = |wanted: &HashMap<&'a Id, usize>| {
        let mut levels: HashMap<&'a Id, usize> = HashMap::new();
        for &id in order {
            let least = around(edges.before(id)).map(|it| levels[it] + 1).max();
            let own = wanted.get(id).copied().unwrap_or_default();
            levels.insert(id, own.max(least.unwrap_or_default()));
        }
        levels
    };
    let forward = longest(&HashMap::new());
    let mut adrift: HashSet<&Id> = HashSet::new();
    for &id in order {
        let mut before = around(edges.before(id)).peekable();
        let is_adrift = match before.peek() {
            None => is_done(id),
            Some(_) => before.all(|it| adrift.contains(it)),
        };
        if is_adrift {
            adrift.insert(id);
        }
    }
    let fixed = order.iter().copied().filter(|id| !adrift.contains(id));
    let mut next: VecDeque<&'a Id> = fixed.collect();
    if next.is_empty() {
        // The longest way is the best that is known.
        let mut left: HashMap<&Id, usize> = HashMap::new();
        for &id in order.iter().rev() {
            let most = around(edges.behind(id)).map(|it| left[it] + 1).max();
            left.insert(id, most.unwrap_or_default());
        }
        let long = |id: &&'a Id| forward[*id] + left[*id];
        let most = order.iter().map(long).max();
        next.extend(order.iter().copied().filter(|id| Some(long(id)) == most));
    }
    let mut placed: HashMap<&'a Id, usize> = next.iter().map(|id| (*id, forward[id])).collect();
    while let Some(id) = next.pop_front() {
        let level = placed[id];
        let beside = around(edges.before(id)).filter_map(|it| placed.get(it).copied());
        let beside = beside.min().unwrap_or(level.saturating_sub(1));
        let before = around(edges.before(id)).map(|it| (it, beside));
        let behind = around(edges.behind(id)).map(|it| (it, level + 1));
        for (it, level) in before.chain(behind) {
            if let Entry::Vacant(free) = placed.entry(it) {
                free.insert(level);
                next.push_back(it);
            }
        }
    }
    longest(&placed)
}

/// These jobs as layers: each comes after all that it is after. In a layer the failed branch comes first: what is dead,
/// then what is after it.
pub fn layers(ids: &[Id], edges: &Edges, state: impl Fn(&Id) -> String) -> Vec<Vec<Id>> {
    let there: HashSet<&Id> = ids.iter().collect();
    let before = |id: &Id| {
        edges
            .before(id)
            .iter()
            .filter(|it| there.contains(it))
            .count()
    };
    let mut missing: HashMap<&Id, usize> = ids.iter().map(|id| (id, before(id))).collect();
    let dead = ids.iter().filter(|id| state(id) == "dead");
    let mut failed: HashSet<&Id> = dead.collect();
    let mut order: Vec<&Id> = ids.iter().filter(|id| missing[id] == 0).collect();
    let mut at = 0;
    while let Some(&id) = order.get(at) {
        at += 1;
        for behind in edges.behind(id).iter().filter(|it| there.contains(it)) {
            if failed.contains(id) {
                failed.insert(behind);
            }
            let Some(left) = missing.get_mut(behind) else {
                continue;
            };
            *left -= 1;
            if *left == 0 {
                order.push(behind);
            }
        }
    }
    let mut layers: BTreeMap<usize, Vec<Id>> = BTreeMap::new();
    for (id, level) in stages(&order, edges, |id| state(id) == "done") {
        layers.entry(level).or_default().push(id.clone());
    }
    let place = |id: &Id| {
        let state = state(id);
        let place = ORDER.iter().position(|it| *it == state);
        (
            place != Some(0),
            !failed.contains(id),
            place.unwrap_or(ORDER.len()),
            id.clone(),
        )
    };
    let mut layers: Vec<Vec<Id>> = layers.into_values().collect();
    layers
        .iter_mut()
        .for_each(|layer| layer.sort_by_cached_key(place));
    layers
}

fn column(level: i32, ids: &[&Id], state: impl Fn(&Id) -> String) -> Column {
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
    fn layers_come_after_each_other_and_the_failed_branch_first() {
        let mut edges = Edges::default();
        for (before, behind) in [
            ("a", "b"),
            ("a", "c"),
            ("c", "d"),
            ("b", "e"),
            ("d", "e"),
            ("a", "f"),
            ("c", "x"),
        ] {
            edges.add(&id(before), &id(behind));
        }
        let ids: Vec<Id> = ["e", "d", "c", "b", "a", "f"].map(id).to_vec();
        let state = |it: &Id| if it == b"c" { "dead" } else { "blocked" }.to_owned();
        let names = |layer: &Vec<Id>| layer.concat();
        let layers: Vec<Vec<u8>> = layers(&ids, &edges, state).iter().map(names).collect();
        assert_eq!(
            layers,
            [b"a".to_vec(), b"cbf".to_vec(), b"d".to_vec(), b"e".to_vec()]
        );
        // What seems to wait for itself, as not all was read at one moment, is in no layer.
        edges.add(&id("e"), &id("a"));
        assert_eq!(
            super::layers(&ids, &edges, |_| String::new()),
            Vec::<Vec<Id>>::new()
        );
    }

    #[test]
    fn done_jobs_stand_beside_those_of_their_stage() {
        // Each job of a stage is after two of the one before; what done jobs were after is not known any more.
        let (stages, wide) = (5, 20);
        let name = |stage: usize, number: usize| id(&format!("{stage}-{:02}", number % wide));
        let is_done = |it: &Id| matches!(it[0], b'0' | b'1') && it[2] > b'0';
        let mut edges = Edges::default();
        let mut ids = Vec::new();
        for (stage, number) in (0..stages).flat_map(|it| (0..wide).map(move |of| (it, of))) {
            let own = name(stage, number);
            if stage > 0 && !is_done(&own) {
                edges.add(&name(stage - 1, number), &own);
                edges.add(&name(stage - 1, number + 1), &own);
            }
            ids.push(own);
        }
        let known = |it: &Id| !edges.before(it).is_empty() || !edges.behind(it).is_empty();
        ids.retain(known);
        let state = |it: &Id| if is_done(it) { "done" } else { "blocked" }.to_owned();
        for (stage, layer) in layers(&ids, &edges, state).iter().enumerate() {
            for it in layer {
                assert_eq!(
                    usize::from(it[0] - b'0'),
                    stage,
                    "{}",
                    String::from_utf8_lossy(it)
                );
            }
        }
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
