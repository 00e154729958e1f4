//! Checks a history with all rules, and collects what they find.

use std::collections::BTreeMap;
use std::fmt;

use super::story::{Stories, Story};
use super::{
    bounds, due, groups, leases, losses, order, purges, settings, tokens, unexpected, windows,
    within, History,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Added, and neither there nor gone for a known reason.
    Lost,
    /// One command of a transaction took effect, and another one did not.
    Half,
    Early,
    /// Delivered or acknowledged after its TTL.
    Expired,
    /// Never added, or with other contents.
    Unexpected,
    Attempts,
    /// Dead without a reason.
    Dead,
    /// Delivered again before its lease ended.
    TwoLeases,
    /// Delivered after it was finished.
    Finished,
    /// A token did something after it had become invalid.
    Stale,
    Order,
    /// A group with a ready job was passed over while another one was served twice.
    Unfair,
    /// Delivered with GROUPFIFO before an older job of its group had ended.
    GroupOrder,
    Tokens,
    /// Delivered although MAXRESERVED or GROUPMAX was reached.
    WithinMax,
    /// What a group has of its own is older than what was answered, or was never said.
    Setting,
    /// Delivered although the window of RATE was full.
    Window,
    /// A purge reported more, or fewer, jobs than it can have removed.
    Purged,
    /// Refused by MAXLEN although there was room, or accepted although there was none.
    Length,
    /// An ADD with NX was accepted although the id was in use or in the dedupe window, or refused although it was
    /// neither.
    Condition,
}

/// Why a job was delivered again. None of these is a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The client asked for it: not counted as a duplicate.
    GivenBack,
    LeaseEnded,
    /// The ACK was not answered, and may not have arrived.
    AckUnknown,
    NackUnknown,
    /// A crash undid the delivery or its ACK, under a setting that allows that.
    LostTail,
    Failover,
}

#[derive(Clone, Debug)]
pub struct Fault {
    pub rule: Rule,
    /// The serial of the job's ADD, if the fault is about one job.
    pub serial: Option<u64>,
    pub text: String,
}

#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub commands: u64,
    pub unanswered: u64,
    /// Entries that were answered in a life that ended, and promised to survive it.
    pub kept: u64,
    pub jobs: u64,
    pub deliveries: u64,
    /// How often the order of two jobs was checked.
    pub orders: u64,
    /// How often the turn of two groups was checked, and with GROUPFIFO the order of two jobs.
    pub turns: u64,
    pub group_orders: u64,
    /// Other jobs that were certainly reserved at deliveries under MAXRESERVED or GROUPMAX.
    pub beside: u64,
    /// Deliveries that certainly shared the window of RATE with others.
    pub windows: u64,
    /// Settings of groups that had to be there at the end.
    pub settings: u64,
    /// Servers killed during a save or a rewrite.
    pub killed_saving: u64,
    /// Jobs that purges removed.
    pub purged: u64,
    /// ADDs that MAXLEN refused.
    pub full: u64,
    /// ADDs with NX that had to be refused because of the dedupe window.
    pub remembered: u64,
    pub again: BTreeMap<Cause, u64>,
}

impl Tally {
    pub fn add(&mut self, other: &Tally) {
        self.commands += other.commands;
        self.unanswered += other.unanswered;
        self.kept += other.kept;
        self.jobs += other.jobs;
        self.deliveries += other.deliveries;
        self.orders += other.orders;
        self.turns += other.turns;
        self.group_orders += other.group_orders;
        self.beside += other.beside;
        self.windows += other.windows;
        self.settings += other.settings;
        self.killed_saving += other.killed_saving;
        self.purged += other.purged;
        self.full += other.full;
        self.remembered += other.remembered;
        for (cause, count) in &other.again {
            *self.again.entry(*cause).or_default() += count;
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "{} of them while saving; {} commands ({} unanswered, {} to be kept), {} jobs, {} deliveries, \
             {} orders, {} turns, {} orders in groups, {} beside others, {} in windows, {} settings, {} purged, {} full, {} remembered; again: {:?}",
            self.killed_saving,
            self.commands,
            self.unanswered,
            self.kept,
            self.jobs,
            self.deliveries,
            self.orders,
            self.turns,
            self.group_orders,
            self.beside,
            self.windows,
            self.settings,
            self.purged,
            self.full,
            self.remembered,
            self.again
        )
    }
}

#[derive(Default)]
pub struct Verdict {
    pub faults: Vec<Fault>,
    pub tally: Tally,
}

impl Verdict {
    pub fn fault(&mut self, rule: Rule, text: String) {
        let serial = None;
        self.faults.push(Fault { rule, serial, text });
    }

    pub fn fault_of(&mut self, story: &Story<'_>, rule: Rule, text: &str) {
        let serial = Some(story.serial);
        let text = format!("{}: {text}", story.name());
        self.faults.push(Fault { rule, serial, text });
    }

    pub fn again(&mut self, cause: Cause) {
        *self.tally.again.entry(cause).or_default() += 1;
    }

    #[track_caller]
    pub fn assert_clean(&self, history: &History) {
        assert!(self.faults.is_empty(), "{}", self.complaint(history));
    }

    /// The first faults, and everything known about the job of the first.
    pub fn complaint(&self, history: &History) -> String {
        const SHOWN: usize = 20;
        let lines = self.faults.iter().take(SHOWN);
        let mut lines: Vec<String> = lines
            .map(|fault| format!("  {:?}: {}", fault.rule, fault.text))
            .collect();
        let first = self.faults.iter().find_map(|fault| fault.serial);
        let stories = Stories::of(history);
        if let Some(story) = first.and_then(|serial| stories.jobs.get(&serial)) {
            lines.push(format!("lives: {:?}\n{}", history.lives, story.tell()));
        }
        format!("{} faults\n{}", self.faults.len(), lines.join("\n"))
    }
}

pub fn check(history: &History) -> Verdict {
    let stories = Stories::of(history);
    let mut verdict = Verdict::default();
    verdict.tally.commands = history.entries.len() as u64;
    verdict.tally.jobs = stories.jobs.len() as u64;
    let unanswered = history.entries.iter().filter(|entry| !entry.answered());
    verdict.tally.unanswered = unanswered.count() as u64;
    let outlive = history.entries.iter().filter(|entry| {
        let ended = entry.life < history.lives.len();
        ended && history.is_certain(entry, entry.life + 1)
    });
    verdict.tally.kept = outlive.count() as u64;
    let handed = stories
        .jobs
        .values()
        .map(|story| story.deliveries().count());
    verdict.tally.deliveries = handed.sum::<usize>() as u64;
    losses::check(&stories, &mut verdict);
    due::check(&stories, &mut verdict);
    unexpected::check(&stories, &mut verdict);
    leases::check(&stories, &mut verdict);
    order::check(&stories, &mut verdict);
    groups::check(&stories, &mut verdict);
    tokens::check(&stories, &mut verdict);
    purges::check(&stories, &mut verdict);
    bounds::check(&stories, &mut verdict);
    within::check(&stories, &mut verdict);
    windows::check(&stories, &mut verdict);
    settings::check(&stories, &mut verdict);
    verdict
}
