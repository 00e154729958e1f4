//! What a delivery tells beside the job itself, where that was asked for.

use super::after::Ended;
use super::job::{Handle, TermsShown};
use super::note::Notes;
use super::Queue;

/// Which of it is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The job's terms.
    pub terms: bool,
    /// How those ended that it was after.
    pub results: bool,
    /// Its steps.
    pub steps: bool,
}

impl Wanted {
    /// Whether anything is: each delivery asks.
    #[inline]
    pub(super) fn any(self) -> bool {
        self.terms | self.results | self.steps
    }
}

/// None of what was not asked for.
#[allow(missing_docs, reason = "as in [`Wanted`]")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extras<'a> {
    pub terms: Option<TermsShown>,
    pub results: Option<Vec<Ended<'a>>>,
    /// The job's notes, whose steps are meant.
    pub steps: Option<Notes<'a>>,
}

impl Extras<'_> {
    /// The length of the steps.
    pub fn steps_len(&self) -> usize {
        self.steps.map_or(0, |steps| steps.bytes().len())
    }
}

impl Queue {
    /// Of a delivery that counts so many attempts.
    #[cold]
    pub(super) fn extras(&self, handle: Handle, wanted: Wanted, attempts: u32) -> Extras<'_> {
        let job = self.jobs().job(handle);
        Extras {
            terms: wanted.terms.then(|| job.terms().shown(attempts)),
            results: wanted.results.then(|| self.results_of(handle).collect()),
            steps: wanted.steps.then(|| self.jobs().notes(handle)),
        }
    }
}
