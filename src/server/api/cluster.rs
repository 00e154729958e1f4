//! Clusters: which node serves a slot, and how Redis and Valkey each move slots atomically.

use super::ctx::Ctx;
use super::function::{api, KeyName};
use redis_module::raw;
use std::ffi::{c_int, CStr};

/// Constants of `valkeymodule.h` of 9.1 that `redismodule.h` lacks.
pub mod valkey {
    pub const OPTIONS_HANDLE_ATOMIC_SLOT_MIGRATION: u32 = 1 << 5;
    pub const EVENT_ATOMIC_SLOT_MIGRATION: u64 = 19;
    pub const SUBEVENT_IMPORT_COMPLETED: u64 = 4;
}

/// The event of Redis 8.4 and newer for slots that moved away atomically.
pub mod trims {
    use redis_module::raw;

    pub const EVENT: u64 = raw::REDISMODULE_EVENT_CLUSTER_SLOT_MIGRATION_TRIM;
    /// All keys are removed at once, without an event for each.
    pub const AT_ONCE: u64 = raw::REDISMODULE_SUBEVENT_CLUSTER_SLOT_MIGRATION_TRIM_BACKGROUND;

    /// The slots that the event is about.
    ///
    /// # Safety
    /// `data` is what the server passed with the event.
    pub unsafe fn slots_of<'a>(data: *const std::ffi::c_void) -> impl Iterator<Item = u16> + 'a {
        // SAFETY: the caller's promise; the server says how many ranges there are.
        let ranges = unsafe {
            let info = &*data.cast::<raw::RedisModuleClusterSlotMigrationTrimInfo>();
            let slots = &*info.slots;
            slots.ranges.as_slice(slots.num_ranges as usize)
        };
        ranges.iter().flat_map(|range| range.start..=range.end)
    }
}

/// The event of Redis 8.4 and newer for atomic imports of slots.
pub mod imports {
    use redis_module::raw;
    use std::ffi::{c_void, CStr, CString};

    pub const EVENT: u64 = raw::REDISMODULE_EVENT_CLUSTER_SLOT_MIGRATION;
    pub const STARTED: u64 = raw::REDISMODULE_SUBEVENT_CLUSTER_SLOT_MIGRATION_IMPORT_STARTED;
    pub const FAILED: u64 = raw::REDISMODULE_SUBEVENT_CLUSTER_SLOT_MIGRATION_IMPORT_FAILED;
    pub const COMPLETED: u64 = raw::REDISMODULE_SUBEVENT_CLUSTER_SLOT_MIGRATION_IMPORT_COMPLETED;

    pub struct Import {
        /// The import's name in CLUSTER MIGRATION.
        pub task: CString,
        /// Ranges of slots: first and last.
        slots: Vec<(u16, u16)>,
    }

    impl Import {
        /// # Safety
        /// `data` is what the server passed with the event.
        pub unsafe fn of(data: *const c_void) -> Import {
            // SAFETY: the caller's promise; the name ends in NUL, and the server says how many ranges there are.
            unsafe {
                let info = &*data.cast::<raw::RedisModuleClusterSlotMigrationInfo>();
                let slots = &*info.slots;
                let ranges = slots.ranges.as_slice(slots.num_ranges as usize);
                Import {
                    task: CStr::from_ptr(info.task_id).to_owned(),
                    slots: ranges
                        .iter()
                        .map(|range| (range.start, range.end))
                        .collect(),
                }
            }
        }

        pub fn has(&self, slot: u16) -> bool {
            let ranges = &mut self.slots.iter();
            ranges.any(|(from, to)| (from..=to).contains(&&slot))
        }
    }
}

impl Ctx<'_> {
    /// Called at load. Says that we handle errors while reading a dump, that we signal modified
    /// keys ourselves, and that a replica may load new data beside the old. Valkey 9.1 moves slots
    /// atomically only if all modules declare support for that.
    pub fn set_module_options(self) {
        let mut options = raw::REDISMODULE_OPTIONS_HANDLE_IO_ERRORS
            | raw::REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED
            | raw::REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD;
        if self.has_atomic_slot_migration() {
            options |= valkey::OPTIONS_HANDLE_ATOMIC_SLOT_MIGRATION;
        }
        // SAFETY: live context.
        unsafe { api!(RedisModule_SetModuleOptions, self.raw(), options as c_int) };
    }

    /// Whether the server may remove the keys of slots that moved away all at once. On Valkey the
    /// event's number means something else.
    pub fn has_trims(self) -> bool {
        self.is_raised_by_redis(trims::EVENT, trims::AT_ONCE)
    }

    /// Whether the server imports slots atomically.
    pub fn has_imports(self) -> bool {
        self.is_raised_by_redis(imports::EVENT, imports::STARTED)
    }

    fn is_raised_by_redis(self, id: u64, sub: u64) -> bool {
        let event = raw::RedisModuleEvent { id, dataver: 1 };
        // SAFETY: takes plain numbers.
        let known = unsafe { api!(RedisModule_IsSubEventSupported, event, sub) != 0 };
        known && !self.is_valkey()
    }

    /// Cancels an import; the server then removes what has come of it. False if it was not under way.
    pub fn cancel_import(self, task: &CStr) -> bool {
        // SAFETY: the format names C strings; the reply is freed here.
        unsafe {
            let reply = api!(
                RedisModule_Call,
                self.raw(),
                c"CLUSTER".as_ptr(),
                c"cccc".as_ptr(),
                c"MIGRATION".as_ptr(),
                c"CANCEL".as_ptr(),
                c"ID".as_ptr(),
                task.as_ptr()
            );
            if reply.is_null() {
                return false;
            }
            let cancelled = api!(RedisModule_CallReplyInteger, reply) == 1;
            api!(RedisModule_FreeCallReply, reply);
            cancelled
        }
    }

    /// Whether modules may declare support for atomic slot migration. To a server of the other
    /// family the option's number may mean something else.
    pub fn has_atomic_slot_migration(self) -> bool {
        // SAFETY: takes no arguments; Redis 7.0 lacks it.
        let known = unsafe { raw::RedisModule_GetModuleOptionsAll.map(|all| all()) };
        let known = known.unwrap_or_default() as u32;
        known & valkey::OPTIONS_HANDLE_ATOMIC_SLOT_MIGRATION != 0 && self.is_valkey()
    }

    fn is_valkey(self) -> bool {
        self.valkey_version().is_some()
    }

    /// `None` on Redis.
    pub fn valkey_version(self) -> Option<(u32, u32, u32)> {
        // SAFETY: live context; the data are freed here, and the field's text, which ends in NUL, with them.
        unsafe {
            let data = api!(RedisModule_GetServerInfo, self.raw(), c"server".as_ptr());
            let field = c"valkey_version".as_ptr();
            let version = api!(RedisModule_ServerInfoGetFieldC, data, field);
            let text = (!version.is_null()).then(|| CStr::from_ptr(version).to_string_lossy());
            let parsed = text.map(|text| {
                let mut numbers = text.split('.').map(|part| part.parse().unwrap_or(0));
                let mut next = || numbers.next().unwrap_or(0);
                (next(), next(), next())
            });
            api!(RedisModule_FreeServerInfo, self.raw(), data);
            parsed
        }
    }

    /// Whether this node of a cluster is importing the slot. The node's own line of CLUSTER NODES
    /// says so: `[93-<-` and the id of the node that it comes from.
    pub fn imports_slot(self, slot: u16) -> bool {
        let mark = format!("[{slot}-<-");
        let is_marked = |own: &[u8]| own.windows(mark.len()).any(|word| word == mark.as_bytes());
        self.with_nodes(|nodes| own_line(nodes).is_some_and(is_marked))
    }

    /// For a replica in a cluster: whether its master serves the slot, as far as the replica knows.
    pub fn masters_serve(self, slot: u16) -> bool {
        self.with_nodes(|nodes| {
            let field =
                |line: &'_ [u8], at| line.split(|&byte| byte == b' ').nth(at).map(<[u8]>::to_vec);
            let master = own_line(nodes).and_then(|own| field(own, 3));
            let is_master = |line: &&[u8]| master.is_some() && field(line, 0) == master;
            let line = lines(nodes).find(is_master);
            line.is_some_and(|line| slots_in(line).any(|slots| slots.contains(&slot)))
        })
    }

    /// Passes the reply of CLUSTER NODES to `read`; an empty one if the server refuses.
    fn with_nodes<T>(self, read: impl FnOnce(&[u8]) -> T) -> T {
        // SAFETY: the format names a C string; the bytes are the reply's, which is freed here.
        unsafe {
            let reply = api!(
                RedisModule_Call,
                self.raw(),
                c"CLUSTER".as_ptr(),
                c"c".as_ptr(),
                c"NODES".as_ptr()
            );
            if reply.is_null() {
                return read(&[]);
            }
            let mut len = 0;
            let start = api!(RedisModule_CallReplyStringPtr, reply, &mut len);
            let nodes: &[u8] = if start.is_null() {
                &[]
            } else {
                std::slice::from_raw_parts(start.cast(), len)
            };
            let result = read(nodes);
            api!(RedisModule_FreeCallReply, reply);
            result
        }
    }

    /// Whether this node of a cluster serves all of these keys: if not, a call with a key is
    /// refused. That is also so for several keys of a moving slot, of which some are here and some
    /// are not.
    pub fn serves(self, keys: &[KeyName<'_>]) -> bool {
        // SAFETY: the format names an array of module strings, as key names are, and its length; the reply is freed here.
        unsafe {
            let reply = api!(
                RedisModule_Call,
                self.raw(),
                c"EXISTS".as_ptr(),
                c"v".as_ptr(),
                keys.as_ptr(),
                keys.len()
            );
            if reply.is_null() {
                return false;
            }
            api!(RedisModule_FreeCallReply, reply);
        }
        true
    }
}

fn lines(nodes: &[u8]) -> impl Iterator<Item = &[u8]> {
    nodes.split(|&byte| byte == b'\n')
}

fn own_line(nodes: &[u8]) -> Option<&[u8]> {
    lines(nodes).find(|line| line.windows(6).any(|word| word == b"myself"))
}

/// The slots that a line lists after eight other words, as `93` or `0-5460`.
fn slots_in(line: &[u8]) -> impl Iterator<Item = std::ops::RangeInclusive<u16>> + '_ {
    line.split(|&byte| byte == b' ').skip(8).filter_map(|word| {
        let word = std::str::from_utf8(word).ok()?;
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        Some(first.parse().ok()?..=last.parse().ok()?)
    })
}
