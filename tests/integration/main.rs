//! Tests against real servers, each started by the test that needs it.

#[path = "../support/mod.rs"]
mod support;

mod launcher;
mod probe;

mod accepted;
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
mod clients;
mod clock_steps;
mod databases;
mod defrag;
mod done;
mod encodings;
mod ending;
mod errors;
mod events;
mod explain;
mod filling;
mod forecast;
mod forged;
mod forged_flows;
mod forgetting;
mod freeing;
#[cfg(target_os = "linux")]
mod groups;
mod io_threads;
mod leaving;
mod listeners;
mod load;
mod loaded;
mod many;
mod memory;
mod moments;
mod newer;
mod queries;
mod resp;
mod server_features;
mod terms;
mod test_clock;
mod totals;
mod traces;

mod keyspace;
mod older;
mod payloads;
mod persistence;
mod recurring;
mod replication;
mod rules;
mod safety;
mod scene;
mod served;
mod standstill;
mod steps;
mod sums;
mod syntax;
mod timer;
mod traffic;
mod trusted;
mod turned;
mod unblock;
mod under;
mod waiting;
mod waiting_in_clusters;
mod woken;
