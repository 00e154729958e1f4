//! Tests against real servers, each started by the test that needs it.

#[path = "../support/mod.rs"]
mod support;

mod launcher;
mod probe;

mod accepted;
mod ack;
mod add;
mod argument_order;
mod asleep;
mod async_load;
mod atomic;
mod audit;
mod awaits;
mod awaits_in_a_row;
mod bpop_contract;
mod bpop_keys;
#[cfg(target_os = "linux")]
mod broken;
mod btouch;
mod clock_steps;
mod company;
mod costs;
mod databases;
mod defrag;
mod del_purge;
mod done;
mod encodings;
mod ending;
mod errors;
mod events;
mod failures;
mod forecast;
mod forged;
mod forged_flows;
mod forgetting;
mod freeing;
#[cfg(target_os = "linux")]
mod groups;
mod guest;
mod io_threads;
mod leaving;
mod listeners;
mod loaded;
mod look;
mod madd;
mod many;
mod max_bytes;
mod memory;
mod nack_touch;
mod newer;
mod next;
mod order;
mod pop;
mod reschedule_kick;
mod resp;
mod settings;
mod terms;
mod test_clock;
mod totals;
mod traces;

mod keyspace;
mod older;
mod payloads;
mod persistence;
mod recurring;
mod recurring_moved;
mod replication;
mod rules;
mod safety;
mod scene;
mod served;
mod standstill;
mod steps;
mod sums;
mod timer;
mod traffic;
mod trusted;
mod turned;
mod unblock;
mod under;
mod waiting;
mod waiting_in_clusters;
mod woken;
