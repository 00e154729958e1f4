//! What a delivery carries beside the job itself, if the client asked for it.

use super::after::JobResult;
use super::job::{Handle, TermsShown};
use super::note::Notes;
use super::Queue;

/// Which extras are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The job's terms.
    pub terms: bool,
    /// How the jobs that it was after ended.
    pub results: bool,
    /// Its steps.
    pub steps: bool,
}

impl Wanted {
    /// Whether any extra is asked for. Runs with each delivery.
    #[inline]
    pub(super) fn any(self) -> bool {
        self.terms | self.results | self.steps
    }
}

/// The extras of a delivery; `None` for what was not asked for.
#[allow(missing_docs, reason = "as in [`Wanted`]")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extras<'a> {
    pub terms: Option<TermsShown>,
    pub results: Option<Vec<JobResult<'a>>>,
    /// The job's notes, of which only the steps are shown.
    pub steps: Option<Notes<'a>>,
}

impl Extras<'_> {
    /// The bytes of the steps.
    pub fn steps_len(&self) -> usize {
        self.steps.map_or(0, |steps| steps.counted() as usize)
    }
}

impl Queue {
    /// The extras of the `attempts`-th delivery.
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
