//! When a recurring job comes again: instants from a rule, a zone and the instant before.
//!
//! Pure, as all of the queue: what a zone's clock shows comes from outside, through [`zone::Zone`].

mod calendar;
pub mod cron;
pub mod cron_error;
mod field;
pub mod rule;
pub mod zone;
