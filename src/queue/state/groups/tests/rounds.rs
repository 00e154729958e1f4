//! Rounds in which very many groups are to be looked at: how many one command looks at, and what it finds.

use super::*;
use crate::queue::effect::Purge;

/// So many groups of as many jobs each; delayed jobs before ready ones.
fn queue_of(groups: usize, jobs: &[u64]) -> Stage {
    let mut stage = Stage::new(1);
    for (number, &wait) in jobs.iter().enumerate() {
        for group in 0..groups {
            let (id, group) = (format!("{group}-{number}"), group.to_string());
            stage.change(|it, now, out| {
                let add = Add {
                    when: When::Delay(wait),
                    group: Some(group.as_bytes()),
                    ..Add::new(Some(id.as_bytes()), b"payload")
                };
                it.late.add(&add, now, &mut it.mint, out).unwrap();
            });
        }
    }
    stage
}

impl Stage {
    fn set(&mut self, change: &SettingsChange) {
        self.change(|it, now, out| it.late.configure_with(change, now, out).unwrap());
    }

    fn pop_many(&mut self, count: u64, noack: bool, ttr_ms: u64) -> Vec<Vec<u8>> {
        let pop = Pop {
            count,
            noack,
            lease: LeaseLength::Asked(ttr_ms),
            ..Pop::default()
        };
        let mut ids = Vec::new();
        self.change(|it, now, out| {
            it.late.pop(&pop, now, &mut it.mint, out, |job| {
                ids.push(job.id.to_vec())
            })
        });
        ids
    }

    /// Groups that have been updated in this round.
    fn looked_at(&self) -> usize {
        let groups = self.late.parts.groups.as_ref().unwrap();
        let known = groups.numbers();
        known
            .filter(|&it| groups.get(it).round() == groups.round)
            .count()
    }
}

fn group_max(most: u64) -> SettingsChange {
    SettingsChange {
        group_max: Some(most),
        ..SettingsChange::default()
    }
}

fn group_fifo(on: bool) -> SettingsChange {
    SettingsChange {
        group_fifo: Some(on),
        ..SettingsChange::default()
    }
}

/// However many jobs a POP delivers: each is of one group, and no other groups are looked at once the looks of the
/// millisecond are used up.
#[test]
fn a_pop_of_many_jobs_looks_at_few_groups_beside_theirs() {
    let mut stage = queue_of(1000, &[0]);
    stage.set(&group_max(1));
    let before = stage.looked_at();
    let popped = stage.pop_many(200, true, 1).len();
    assert_eq!(popped, 200);
    let looked_at = stage.looked_at() + popped - before;
    assert!(2 * looked_at < 3 * popped, "{looked_at} for {popped}");
    stage.check();
}

/// A setting that held all groups is lifted: one of them has a ready job.
#[test]
fn a_ready_job_is_found_once_its_group_is_not_held_any_more() {
    let held = [
        (group_fifo(true), group_fifo(false)),
        (
            SettingsChange {
                group_rate: Some(Some(Rate {
                    count: 1,
                    window_ms: 1_000_000,
                })),
                ..SettingsChange::default()
            },
            SettingsChange {
                group_rate: Some(None),
                ..SettingsChange::default()
            },
        ),
    ];
    for (held, lifted) in held {
        let mut stage = queue_of(300, &[5000]);
        stage.set(&held);
        let add = |stage: &mut Stage, id: &'static [u8], wait| {
            stage.change(|it, now, out| {
                let add = Add {
                    when: When::Delay(wait),
                    group: Some(b"last"),
                    ..Add::new(Some(id), b"payload")
                };
                it.late.add(&add, now, &mut it.mint, out).unwrap();
            });
        };
        // The first one is delivered, and keeps its group from giving the second one.
        add(&mut stage, b"first", 0);
        add(&mut stage, b"second", 0);
        stage.late.work_off(usize::MAX);
        assert_eq!(stage.pop_many(2, false, 1_000_000), [b"first"]);
        stage.set(&lifted);
        assert!(stage.late.parts.is_passing());
        assert_eq!(stage.pop_many(1, false, 1_000_000), [b"second"]);
        assert!(stage.late.parts.is_passing());
        stage.check();
    }
}

/// More leases are overdue than one command ends: to the purge, their jobs are not reserved.
#[test]
fn leases_that_are_over_outlive_a_purge_in_their_groups() {
    let mut stage = queue_of(40, &[0; 60]);
    assert_eq!(stage.pop_many(1600, false, 10).len(), 1600);
    assert_eq!(stage.pop_many(600, false, 1_000_000).len(), 600);
    stage.now_ms += 20;
    // Decided as when so many leases are overdue that not all are ended before.
    let purge = |stage: &mut Stage| {
        stage.change(|it, now, out| {
            let cut = now.ms();
            let state = Some(State::Reserved);
            let count = it.late.jobs.taken_by(state, cut);
            it.late
                .commit_purge(Purge::State { state, cut }, count, out);
            count
        })
    };
    assert_eq!(purge(&mut stage), 600);
    assert!(
        stage.late.parts.is_passing(),
        "all groups looked at at once"
    );
    stage.check();
    let reserved = stage.late.parts.groups.as_ref().unwrap().reserved;
    assert_eq!(reserved, 1600);
    // Touched, purged again, and ended, in the middle of it.
    stage.add();
    stage.pop_many(30, false, 1_000_000);
    purge(&mut stage);
    stage.check();
    for _ in 0..4 {
        stage.late.work_off(7);
        stage.change(|it, now, out| {
            it.late.expire_overdue(now, 500, out);
        });
        stage.check();
    }
    assert_eq!(stage.late.parts.groups.as_ref().unwrap().reserved, 0);
    stage.late.work_off(usize::MAX);
    stage.check();
}

#[test]
fn settings_leave_rounds_to_purges() {
    let mut stage = queue_of(300, &[0, 5000]);
    stage.pop_many(2, false, 1_000_000);
    for most in 1..=20 {
        stage.set(&group_max(most));
    }
    let mut purge = |state| {
        stage.change(|it, now, out| it.late.purge(Some(state), now, out));
        stage.check();
        stage.looked_at()
    };
    let looked_at = purge(State::Ready);
    assert!(looked_at < 150, "{looked_at} groups at once");
    purge(State::Delayed);
}
