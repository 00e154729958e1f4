//! What a worker decides, without I/O, threads or a clock. Replies, ticks and the ends of handlers go in; commands,
//! handlers to start and jobs to tell come out. `io.rs` executes them.

mod alone;
mod control;
mod delivery;
mod ends;
mod events;
mod fatalities;
mod fetch;
mod held;
mod idle;
mod leases;
mod link;
mod listener;
mod nearest;
mod outcome;
mod pool;
mod replies;
mod scheduler;
mod settings;
mod state;
mod stop;
#[cfg(test)]
mod tests;
pub(crate) mod trouble;

pub(crate) use alone::limit;
pub(crate) use delivery::{before, terms, Before, Delivered, JobKey, Terms};
pub use events::CancelReason;
pub(crate) use events::{
    Action, End, Event, Line, Name, Owner, Reason, Said, Sent, Serial, Suspension, Turn,
};
pub(crate) use fetch::{Member, SERVER_TTR};
pub(crate) use held::{BySerial, Running};
pub(crate) use idle::IDLE_AFTER;
pub(crate) use nearest::nearest;
pub(crate) use outcome::{step, Outcome};
pub(crate) use settings::{Fill, Settings, Shape};
pub(crate) use state::Core;
