#![doc = include_str!("../README.md")]

mod attempt;
mod bounds;
mod cluster;
mod codec;
mod connect;
mod core;
mod dead_hook;
mod deaths;
mod envelope;
mod error;
mod guard;
mod handler;
mod health;
mod hooks;
mod io;
mod job;
mod json;
mod keys;
mod kind;
mod line;
mod middleware;
#[cfg(feature = "otel")]
pub mod otel;
mod plan;
mod queue;
mod refused;
mod result;
mod ruled;
mod run;
mod said;
mod server;
mod source;
mod steps;
mod stopper;
#[cfg(feature = "testing")]
pub mod testing;
mod testjob;
mod values;
mod verdict;
mod worker;

pub use crate::core::CancelReason;
pub use attempt::{OnDead, WaitFor};
pub use codec::{Codec, Json};
pub use envelope::Headers;
pub use error::{BoxError, Error, Outcome, Suspended};
pub use handler::Handler;
pub use health::Health;
pub use hooks::Hooks;
pub use job::Job;
pub use kind::Kind;
pub use middleware::{Call, Next, Returned};
pub use queue::{
    Adding, AsId, Explanation, FailedAttempt, Group, GroupSettings, GroupStats, IfExists, JobInfo,
    LatenessBucket, Nack, NackMode, NewJob, Peek, Peeked, Pop, Queue, QueueGroup, QueueSettings,
    Rate, Reschedule, Reserved, Rule, RuleChanges, Rules, Scan, State, Stats, Totals,
};
pub use redis;
pub use refused::Refused;
pub use result::JobResult;
pub use server::Server;
pub use stopper::{shutdown, Stopper};
#[allow(deprecated)]
pub use testjob::Inline;
pub use testjob::{TestJob, TestRun};
pub use verdict::{give_up, is, retry_in, snooze, Cancelled, Decision};
pub use worker::Worker;
