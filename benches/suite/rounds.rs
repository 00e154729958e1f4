//! Everything that is compared is run in turn, round by round, so that a slower minute of the machine
//! hits all alike.

use std::collections::BTreeMap;

/// What is measured of each, one sample a round.
pub type Runs<'a, B, T> = &'a [(&'static str, fn(&mut B) -> T)];

pub struct Samples<T> {
    of: BTreeMap<&'static str, Vec<T>>,
}

impl<T: Copy> Samples<T> {
    /// So many rounds, each beginning with another one.
    pub fn take<B>(bench: &mut B, rounds: usize, runs: Runs<'_, B, T>) -> Samples<T> {
        let mut samples = Samples {
            of: BTreeMap::new(),
        };
        for round in 0..rounds {
            for turn in 0..runs.len() {
                let (name, run) = runs[(round + turn) % runs.len()];
                samples.of.entry(name).or_default().push(run(bench));
            }
        }
        samples
    }

    pub fn of(&self, name: &str) -> &[T] {
        self.of.get(name).unwrap_or_else(|| panic!("no {name}"))
    }

    pub fn map(&self, name: &str, part: impl FnMut(&T) -> f64) -> Vec<f64> {
        self.of(name).iter().map(part).collect()
    }
}
