//! What a client can see of the model.

use super::{Fault, Job, Model, Pause, Phase, LAST};
use dq::queue::job::State;

impl Job {
    pub fn state(&self, now_us: u64) -> State {
        match self.phase {
            Phase::Reserved { .. } => State::Reserved,
            Phase::Dead { .. } => State::Dead,
            Phase::Done { .. } => State::Done,
            Phase::Blocked => State::Blocked,
            Phase::Waiting if self.due <= now_us / 1000 => State::Ready,
            Phase::Waiting => State::Delayed,
        }
    }

    /// Bytes of its id, payload and steps, and of its successor's.
    pub fn bytes(&self) -> u64 {
        let own = (self.id.len() + self.payload.len()) as u64 + self.notes.bytes();
        own + self.next.as_ref().map_or(0, |next| next.bytes())
    }

    /// "due, due, deadline, time of death"
    pub fn at(&self) -> u64 {
        match self.phase {
            Phase::Waiting => self.due,
            Phase::Blocked => self.named_due().unwrap_or(0),
            Phase::Reserved { deadline, .. } => deadline,
            Phase::Dead { since, .. } => since,
            Phase::Done { finished, .. } => finished,
        }
    }
}

impl Model {
    /// Jobs of a state in "the state's own order (due; ready order; deadline; time of death)".
    pub fn ordered(&self, state: State, now_us: u64) -> Vec<&Job> {
        if state == State::Done {
            return self.in_end_order();
        }
        let of_state = |job: &&Job| job.state(now_us) == state;
        let mut jobs: Vec<&Job> = self.jobs.iter().filter(of_state).collect();
        match state {
            State::Ready => {
                if self.has(Fault::NewestFirst) {
                    jobs.reverse();
                }
                let ranked = !self.has(Fault::PriorityIgnored);
                jobs.sort_by_key(|job| (if ranked { job.priority } else { 0 }, job.due));
            }
            State::Dead => jobs.sort_by_key(|job| match job.phase {
                Phase::Dead { since, order } => (since, order),
                _ => (0, 0),
            }),
            State::Delayed | State::Reserved | State::Done => jobs.sort_by_key(|job| job.at()),
            State::Blocked => jobs.sort_by_key(|job| job.seq),
        }
        jobs
    }

    pub fn count(&self, state: State, now_us: u64) -> usize {
        let of_state = |job: &&Job| job.state(now_us) == state;
        let all = self.jobs.iter().chain(&self.done);
        all.filter(of_state).count()
    }

    /// "delayed + ready + reserved"
    pub fn live(&self) -> usize {
        let dead = |job: &&Job| matches!(job.phase, Phase::Dead { .. });
        self.jobs.len() - self.jobs.iter().filter(dead).count()
    }

    /// The queue's bytes as MAXBYTES counts them.
    pub fn bytes(&self) -> u64 {
        let successors = self.jobs.iter().filter_map(|job| job.next.as_ref());
        let unseen: u64 = successors.map(|next| next.bytes()).sum();
        let faulty = self.has(Fault::SuccessorsWeighNothing);
        let all: u64 = self.jobs.iter().map(Job::bytes).sum();
        let steps: u64 = self.jobs.iter().map(|job| job.notes.bytes()).sum();
        let weightless = self.has(Fault::StepsWeighNothing);
        all - if faulty { unseen } else { 0 } - if weightless { steps } else { 0 }
            + self.names_len()
            + self.values_len()
    }

    pub fn next_due(&self, now_us: u64) -> Option<u64> {
        // "the bound of instants, which is for no job an instant at which something happens"
        let delayed = |job: &&Job| job.state(now_us) == State::Delayed && job.due < LAST;
        self.jobs.iter().filter(delayed).map(|job| job.due).min()
    }

    /// "counts of delayed and ready jobs by due, over n equal parts of FROM (inclusive) to TO
    /// (exclusive): part i begins at FROM + floor(i x (TO - FROM) / n)"
    pub fn forecast(&self, from: u64, to: u64, parts: u64) -> Vec<usize> {
        let begin = |part: u64| from + part * (to - from) / parts;
        let includes_to = self.has(Fault::ForecastIncludesTo);
        let is_in = |part: u64, due: u64| {
            let is_last = includes_to && part + 1 == parts && due == to;
            is_last || (begin(part)..begin(part + 1)).contains(&due)
        };
        let count = |part: u64| {
            let waits = |job: &&Job| job.phase == Phase::Waiting && is_in(part, job.due);
            self.jobs.iter().filter(waits).count()
        };
        (0..parts).map(count).collect()
    }

    pub fn oldest_ready(&self, now_us: u64) -> Option<u64> {
        let ready = |job: &&Job| job.state(now_us) == State::Ready;
        let least = self.jobs.iter().filter(ready).map(|job| job.due).min()?;
        Some(now_us / 1000 - least)
    }

    /// When time alone changes something next.
    pub fn next_event(&self) -> Option<u64> {
        let job = self.first_event().map(|(at, _, _)| at);
        let done = self.next_done_over();
        let memory = self.memory.values().copied();
        let pauses = self.own.values().map(|own| own.paused_until);
        let pauses = pauses.filter(|&until| until != 0 && until <= LAST);
        job.into_iter()
            .chain(memory)
            .chain(done)
            .chain(pauses)
            .min()
    }

    /// When time alone next does something, after now.
    pub fn next_instant(&self, now_us: u64) -> Option<u64> {
        let pause = match self.pause {
            Pause::Until(until) => Some(until),
            Pause::Off | Pause::Forever => None,
        };
        let instants = [self.next_event(), self.next_due(now_us), pause];
        let instants = instants
            .into_iter()
            .flatten()
            .chain(self.rate_opens(now_us))
            .chain(self.group_rates_open(now_us));
        let to_come = now_us / 1000 + 1..LAST;
        instants.filter(|at| to_come.contains(at)).min()
    }

    pub fn is_paused(&self, now_us: u64) -> bool {
        match self.pause {
            Pause::Off => false,
            Pause::Until(until) => now_us / 1000 < until,
            Pause::Forever => true,
        }
    }

    /// The pause as STATS shows it.
    pub fn paused(&self, now_us: u64) -> i64 {
        match self.pause {
            Pause::Until(until) if self.is_paused(now_us) => until as i64,
            Pause::Forever => -1,
            _ => 0,
        }
    }

    /// Whether deliveries are held back, whatever is ready.
    pub fn is_held(&self, now_us: u64, noack: bool) -> bool {
        let limit = self.settings.max_reserved as usize;
        let exempt = noack && !self.has(Fault::MaxReservedHoldsNoack);
        let full = limit != 0 && !exempt && self.count(State::Reserved, now_us) >= limit;
        let paused = self.is_paused(now_us) && !self.has(Fault::PauseIgnored);
        paused || full && !self.has(Fault::MaxReservedOff) || !self.rate_lets(None, noack, now_us)
    }

    /// Whether a POP would deliver something.
    pub fn would_deliver(&self, now_us: u64, noack: bool) -> bool {
        let fits = |job: &Job| self.rate_lets(Some(job), noack, now_us);
        !self.is_held(now_us, noack) && self.next_in_turn(now_us, noack).is_some_and(fits)
    }

    /// Whether no key is kept for the queue.
    pub fn is_disposable(&self) -> bool {
        !self.kept && self.jobs.is_empty() && self.done.is_empty()
    }
}
