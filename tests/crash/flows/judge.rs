//! The rules that everything sent and received must satisfy.

use std::collections::{HashMap, HashSet};

use super::record::{
    queue_of, Added, After, Answer, Blocked, Delivered, Ended, Event, Forked, How, Kicked, OnDead,
    Outcome, Record,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Delivered before a job that it is after had ended.
    Early,
    /// The results are not those of the jobs that it is after.
    Results,
    /// Dead because of a job that did not end that way.
    Died,
    /// Added, and neither ended nor still there.
    Lost,
    /// Blocked, and nothing can unblock it.
    Stuck,
}

pub type Found = (Fault, String);

/// The events of each job.
#[derive(Default)]
struct Jobs<'a> {
    added: HashMap<&'a str, &'a Added>,
    ended: HashMap<&'a str, Vec<&'a Ended>>,
    kicked: HashMap<&'a str, Vec<&'a Kicked>>,
    forked: HashMap<&'a str, Vec<&'a Forked>>,
}

pub fn judge(record: &Record) -> Vec<Found> {
    let mut jobs = Jobs::default();
    for event in &record.events {
        match event {
            Event::Added(it) => drop(jobs.added.insert(&it.id, it)),
            Event::Ended(it) => jobs.ended.entry(&it.id).or_default().push(it),
            Event::Kicked(it) => jobs.kicked.entry(&it.id).or_default().push(it),
            Event::Forked(it) => jobs.forked.entry(&it.id).or_default().push(it),
            Event::Delivered(_) | Event::Died(..) => {}
        }
    }
    let mut found = Vec::new();
    for event in &record.events {
        match event {
            Event::Delivered(it) => found.extend(jobs.judge_delivery(it)),
            Event::Died(id, reason) => found.extend(jobs.judge_death(id, reason)),
            _ => {}
        }
    }
    for (id, added) in &jobs.added {
        let has_gone = jobs.ends(id).any(|end| !matches!(end.how, How::Dead(_)));
        let is_left = record.left.iter().any(|left| left == id);
        if added.answer == Answer::Yes && !has_gone && !is_left {
            found.push((Fault::Lost, (*id).to_owned()));
        }
    }
    let stuck = record.blocked.iter().flat_map(stuck);
    found.extend(
        stuck
            .chain(record.left.clone())
            .map(|id| (Fault::Stuck, id)),
    );
    found
}

/// Blocked jobs that wait for nothing that can still end.
pub fn stuck(seen: &Blocked) -> Vec<String> {
    let waits = |after: &After| match after {
        After::Jobs(ids) => ids.iter().any(|id| seen.held.contains(id)),
        After::Group(group) => seen.held.contains(group),
    };
    let stuck = seen.jobs.iter().filter(|(_, after)| !waits(after));
    stuck.map(|(id, _)| id.clone()).collect()
}

impl<'a> Jobs<'a> {
    /// Ends of the job that may have taken effect.
    fn ends(&self, id: &str) -> impl Iterator<Item = &&'a Ended> + use<'_, 'a> {
        let ended = self.ended.get(id).into_iter().flatten();
        ended.filter(|end| end.answer != Answer::No)
    }

    /// Whether it may have ended that way by then.
    fn may_have(&self, id: &str, by_us: u64, is: impl Fn(&How) -> bool) -> bool {
        self.ends(id)
            .any(|end| end.span.sent_us < by_us && is(&end.how))
    }

    /// Whether it may be dead: by its own NACK, or because a job that it is after died or was
    /// removed.
    fn may_be_dead(&self, id: &str, by_us: u64) -> bool {
        let is_dead = |how: &How| matches!(how, How::Dead(_));
        let (mut seen, mut open) = (HashSet::new(), vec![id]);
        while let Some(id) = open.pop() {
            if self.may_have(id, by_us, is_dead) || self.may_die_of_gone(id, by_us) {
                return true;
            }
            if self.on_dead(id).any(|on_dead| on_dead == OnDead::Die) {
                let causes = self.causes(id).map(String::as_str);
                open.extend(causes.filter(|cause| seen.insert(*cause)));
            }
        }
        false
    }

    fn may_die_of_gone(&self, id: &str, by_us: u64) -> bool {
        let is_gone = |cause| self.may_have(cause, by_us, |how| *how == How::Deleted);
        self.on_dead(id).any(|on_dead| on_dead != OnDead::Run)
            && self.causes(id).any(|cause| is_gone(cause))
    }

    /// All jobs that it may ever have been after.
    fn causes(&self, id: &str) -> impl Iterator<Item = &'a String> + use<'_, 'a> {
        let added = self.added.get(id).map(|it| &it.after);
        let jobs = added.and_then(|after| match after {
            After::Jobs(ids) => Some(ids),
            After::Group(_) => None,
        });
        let forked = self.forked.get(id).into_iter().flatten();
        let children = forked.flat_map(|it| &it.children);
        jobs.into_iter().flatten().chain(children)
    }

    fn on_dead(&self, id: &str) -> impl Iterator<Item = OnDead> + use<'a> {
        let forked = self.forked.contains_key(id).then_some(OnDead::Wait);
        let added = self.added.get(id).map(|it| it.on_dead);
        added.into_iter().chain(forked)
    }

    fn judge_death(&self, id: &str, reason: &str) -> Option<Found> {
        let fault = |what: &str| Some((Fault::Died, format!("{id}: {reason}: {what}")));
        let Some(cause) = reason.strip_prefix("after ") else {
            let is_so = |how: &How| *how == How::Dead(reason.to_owned());
            let is_so = self.may_have(id, u64::MAX, is_so);
            return (!is_so).then(|| fault("nobody said so")).flatten();
        };
        let (cause, outcome) = cause.split_once(": ").expect("an id and an outcome");
        if !self.causes(id).any(|it| it == cause) {
            return fault("it was not after it");
        }
        let may_be = match outcome {
            "dead" => {
                self.may_be_dead(cause, u64::MAX) && self.on_dead(id).any(|it| it == OnDead::Die)
            }
            "deleted" => {
                let deleted = self.may_have(cause, u64::MAX, |how| *how == How::Deleted);
                deleted && self.on_dead(id).any(|it| it != OnDead::Run)
            }
            _ => false,
        };
        (!may_be).then(|| fault("it did not end so")).flatten()
    }

    fn judge_delivery(&self, job: &Delivered) -> Vec<Found> {
        let Some(added) = self.added.get(job.id.as_str()) else {
            return vec![(Fault::Results, format!("{}: nobody added it", job.id))];
        };
        // What the job is after now: what it was last given back for, or what its ADD named.
        let forks = self.forked.get(job.id.as_str()).into_iter().flatten();
        let before = forks.filter(|it| it.token < job.token && it.answer != Answer::No);
        let mut possible: Vec<(Vec<String>, OnDead)> = vec![match &added.after {
            After::Jobs(ids) => (ids.clone(), added.on_dead),
            After::Group(_) => (Vec::new(), OnDead::Run),
        }];
        let mut forks: Vec<&&Forked> = before.collect();
        forks.sort_by_key(|it| it.token);
        let is_original = forks.is_empty();
        for fork in forks {
            if fork.answer == Answer::Yes {
                possible.clear();
            }
            possible.push((fork.children.clone(), OnDead::Wait));
        }
        let is_kicked = self.is_kicked(&job.id, job.span.ended_us);
        let is_done = |how: &How| matches!(how, How::Done(_));
        if is_kicked && self.may_have(&job.id, job.span.ended_us, is_done) {
            // It runs again, and is after nothing: what it was after was dropped when it ended.
            possible.push((Vec::new(), OnDead::Run));
        }
        let shown: Vec<&String> = job.results.iter().map(|(id, _, _)| id).collect();
        let fits = possible
            .iter()
            .find(|(ids, _)| ids.iter().eq(shown.iter().copied()));
        let Some(&(_, on_dead)) = fits else {
            let what = format!("{}: {:?}, not of {possible:?}", job.id, job.results);
            return vec![(Fault::Results, what)];
        };
        let results = job.results.iter();
        let mut found: Vec<Found> = results
            .filter_map(|result| {
                let fault = self.judge_result(job, result, on_dead, is_kicked)?;
                Some((fault, format!("{}: {result:?}", job.id)))
            })
            .collect();
        if let (After::Group(group), true, false) = (&added.after, is_original, is_kicked) {
            found.extend(self.judge_group(job, added, group));
        }
        found
    }

    fn is_kicked(&self, id: &str, by_us: u64) -> bool {
        let kicked = self.kicked.get(id).into_iter().flatten();
        let mut kicked = kicked.filter(|it| it.answer != Answer::No);
        kicked.any(|it| it.span.sent_us < by_us)
    }

    fn judge_result(
        &self,
        job: &Delivered,
        (id, outcome, value): &Outcome,
        on_dead: OnDead,
        is_kicked: bool,
    ) -> Option<Fault> {
        let by_us = job.span.ended_us;
        let (may_be, fits) = match outcome.as_deref() {
            None => (is_kicked, value.is_none()),
            Some("done") => {
                let is_so = |how: &How| match how {
                    How::Done(result) => Some(result) == value.as_ref(),
                    _ => false,
                };
                let is_done = |how: &How| matches!(how, How::Done(_));
                (
                    self.may_have(id, by_us, is_done),
                    self.may_have(id, by_us, is_so),
                )
            }
            Some("dead") => {
                let is_so = |how: &How| match how {
                    How::Dead(reason) => Some(reason) == value.as_ref(),
                    _ => false,
                };
                let of_another = value.as_ref().is_some_and(|it| it.starts_with("after "));
                let takes_dead = on_dead == OnDead::Run || is_kicked;
                let may_be = takes_dead && self.may_be_dead(id, by_us);
                (may_be, of_another || self.may_have(id, by_us, is_so))
            }
            Some("deleted") => {
                let takes = on_dead == OnDead::Run || is_kicked;
                let deleted = self.may_have(id, by_us, |how| *how == How::Deleted);
                (takes && deleted, value.is_none())
            }
            Some(_) => return Some(Fault::Results),
        };
        match (may_be, fits) {
            (true, true) => None,
            (true, false) => Some(Fault::Results),
            (false, _) => Some(Fault::Early),
        }
    }

    /// Every job that was in the group when this one was added must have ended.
    fn judge_group(&self, job: &Delivered, added: &Added, group: &str) -> Option<Found> {
        let by_us = job.span.ended_us;
        let of_group = |it: &&&Added| {
            it.group.as_deref() == Some(group)
                && queue_of(&it.id) == queue_of(&job.id)
                && it.answer == Answer::Yes
                && it.span.ended_us < added.span.sent_us
        };
        let mut members = self.added.values().filter(of_group);
        let open = members.find(|it| {
            !self.may_have(&it.id, by_us, |_| true) && !self.may_be_dead(&it.id, by_us)
        })?;
        Some((Fault::Early, format!("{}: {} of {group}", job.id, open.id)))
    }
}

type Falsify = fn(&mut Record) -> bool;

/// Faults that the judge must notice. A function returns false if the record has nothing to
/// falsify.
pub const CANARIES: [(Fault, Falsify); 10] = [
    // The first job that a delivery was after ends only after that delivery.
    (Fault::Early, |record| {
        let Some((id, by_us)) = a_join(record) else {
            return false;
        };
        for event in &mut record.events {
            match event {
                Event::Ended(end) if end.id == id => end.span.sent_us = by_us + 1,
                _ => {}
            }
        }
        true
    }),
    // All jobs of a group end only after the delivery that waited for them.
    (Fault::Early, |record| {
        let after_group = |event: &Event| match event {
            Event::Added(it) if matches!(it.after, After::Group(_)) => Some(it.id.clone()),
            _ => None,
        };
        let all: HashSet<String> = record.events.iter().filter_map(after_group).collect();
        let mut any = false;
        for event in &mut record.events {
            match event {
                Event::Delivered(it) if all.contains(&it.id) => {
                    it.span.ended_us = 0;
                    any = true;
                }
                _ => {}
            }
        }
        any
    }),
    (Fault::Results, |record| {
        change_join(record, |results| results[0].2 = Some("another".into()))
    }),
    (Fault::Results, |record| {
        change_join(record, |results| results[0].2 = None)
    }),
    (Fault::Results, |record| {
        change_join(record, |results| drop(results.pop()))
    }),
    (Fault::Results, |record| {
        change_join(record, |results| {
            let id = results[1].0.clone();
            results[0].0 = id;
        })
    }),
    (Fault::Died, |record| {
        let added = record.events.iter().find_map(|event| match event {
            Event::Added(it) => Some(it.id.clone()),
            _ => None,
        });
        let died = added.map(|id| Event::Died(id, "after nobody: dead".into()));
        let is_there = died.is_some();
        record.events.extend(died);
        is_there
    }),
    (Fault::Lost, |record| {
        let added = record.events.iter().find_map(|event| match event {
            Event::Added(it) if it.answer == Answer::Yes => Some(it.clone()),
            _ => None,
        });
        let lost = added.map(|it| Added {
            id: "lost".into(),
            ..it
        });
        record.events.extend(lost.map(Event::Added));
        true
    }),
    // Nothing exists that the blocked jobs wait for.
    (Fault::Stuck, |record| {
        let mut blocked = record.blocked.iter_mut();
        let some = blocked.find(|it| !it.jobs.is_empty());
        some.map(|it| it.held.clear()).is_some()
    }),
    (Fault::Stuck, |record| {
        record.left.push("left".into());
        true
    }),
];

/// A delivery after several jobs, the first of which is done; and when it was answered.
fn a_join(record: &Record) -> Option<(String, u64)> {
    record.events.iter().find_map(|event| match event {
        Event::Delivered(it) => is_join(it).then(|| (it.results[0].0.clone(), it.span.ended_us)),
        _ => None,
    })
}

fn is_join(job: &Delivered) -> bool {
    job.results.len() > 1 && job.results[0].1.as_deref() == Some("done")
}

fn change_join(record: &mut Record, change: impl Fn(&mut Vec<Outcome>)) -> bool {
    let join = record.events.iter_mut().find_map(|event| match event {
        Event::Delivered(it) if is_join(it) => Some(it),
        _ => None,
    });
    join.map(|it| change(&mut it.results)).is_some()
}
