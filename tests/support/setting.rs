//! Settings of a server that must make no difference: those of `DQ_SETTINGS`, and a test's own.

use std::env;
use std::thread;

use super::Version;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Threads that read, parse and write for the main one.
    IoThreads,
    Aof,
    /// A full synchronization uses a connection of its own.
    DualChannel,
    /// A replica loads new data while it keeps the old.
    SwapDb,
}

impl Setting {
    const ALL: [Setting; 4] = [
        Setting::IoThreads,
        Setting::Aof,
        Setting::DualChannel,
        Setting::SwapDb,
    ];

    fn name(self) -> &'static str {
        match self {
            Setting::IoThreads => "io-threads",
            Setting::Aof => "aof",
            Setting::DualChannel => "dual-channel",
            Setting::SwapDb => "swapdb",
        }
    }

    /// Its lines in the configuration; none if the server does not know it.
    pub(super) fn lines(self, version: &Version) -> &'static [&'static str] {
        let is_old = !version.at_least(8, 0);
        // The threads spin while they wait: more of them than cores would take processor time from
        // the main thread.
        let has_many_cores = thread::available_parallelism().is_ok_and(|cores| cores.get() >= 4);
        match self {
            Setting::IoThreads if is_old && has_many_cores => {
                &["io-threads 4", "io-threads-do-reads yes"]
            }
            Setting::IoThreads if is_old => &["io-threads 2", "io-threads-do-reads yes"],
            Setting::IoThreads if has_many_cores => &["io-threads 4"],
            Setting::IoThreads => &["io-threads 2"],
            Setting::Aof => &["appendonly yes"],
            Setting::DualChannel if is_old => &[],
            Setting::DualChannel if version.is_redis() => &["repl-rdb-channel yes"],
            Setting::DualChannel => &["dual-channel-replication-enabled yes"],
            Setting::SwapDb => &["repl-diskless-load swapdb"],
        }
    }

    pub fn is_known_to(self, version: &Version) -> bool {
        !self.lines(version).is_empty()
    }

    /// The settings that `DQ_SETTINGS` names, for all servers with the module.
    pub(super) fn of_environment() -> Vec<Setting> {
        let names = env::var("DQ_SETTINGS").unwrap_or_default();
        let named = |name: &str| {
            let setting = Setting::ALL.into_iter().find(|it| it.name() == name);
            setting.unwrap_or_else(|| panic!("DQ_SETTINGS: no setting {name:?}"))
        };
        names.split_whitespace().map(named).collect()
    }
}
