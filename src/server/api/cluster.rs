//! Clusters: which node serves a slot, and how Redis and Valkey each move slots atomically.

use super::{api, Ctx, KeyName};
use redis_module::raw;
use std::ffi::CStr;

/// What `valkeymodule.h` of 9.1 has and `redismodule.h` has not.
pub mod valkey {
    pub const OPTIONS_HANDLE_ATOMIC_SLOT_MIGRATION: u32 = 1 << 5;
    pub const EVENT_ATOMIC_SLOT_MIGRATION: u64 = 19;
    pub const SUBEVENT_IMPORT_COMPLETED: u64 = 4;
}

/// What Redis 8.4 and newer tell of slots that moved away at once.
pub mod trims {
    use redis_module::raw;

    pub const EVENT: u64 = raw::REDISMODULE_EVENT_CLUSTER_SLOT_MIGRATION_TRIM;
    /// All keys go at once, without a word about each.
    pub const AT_ONCE: u64 = raw::REDISMODULE_SUBEVENT_CLUSTER_SLOT_MIGRATION_TRIM_BACKGROUND;

    /// The slots that the event is about.
    ///
    /// # Safety
    /// `data` is what the server passed with it.
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

/// And of slots that are to come here at once.
pub mod imports {
    use redis_module::raw;
    use std::ffi::{c_void, CStr, CString};

    pub const EVENT: u64 = raw::REDISMODULE_EVENT_CLUSTER_SLOT_MIGRATION;
    pub const STARTED: u64 = raw::REDISMODULE_SUBEVENT_CLUSTER_SLOT_MIGRATION_IMPORT_STARTED;
    pub const FAILED: u64 = raw::REDISMODULE_SUBEVENT_CLUSTER_SLOT_MIGRATION_IMPORT_FAILED;
    pub const COMPLETED: u64 = raw::REDISMODULE_SUBEVENT_CLUSTER_SLOT_MIGRATION_IMPORT_COMPLETED;

    pub struct Import {
        /// What CLUSTER MIGRATION calls it.
        pub task: CString,
        /// From, to.
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
    /// Whether keys of slots that moved away may be taken out at once. On Valkey the event's number
    /// means something else.
    pub fn has_trims(self) -> bool {
        self.is_told_by_redis(trims::EVENT, trims::AT_ONCE)
    }

    /// Whether slots may come here at once.
    pub fn has_imports(self) -> bool {
        self.is_told_by_redis(imports::EVENT, imports::STARTED)
    }

    fn is_told_by_redis(self, id: u64, sub: u64) -> bool {
        let event = raw::RedisModuleEvent { id, dataver: 1 };
        // SAFETY: takes plain numbers.
        let known = unsafe { api!(RedisModule_IsSubEventSupported, event, sub) != 0 };
        known && !self.is_valkey()
    }

    /// Whether it was under way, and is no more: what has come of it is taken out again.
    pub fn cancel_import(self, task: &CStr) -> bool {
        // SAFETY: the format names C strings; the reply is freed here.
        unsafe {
            let reply = api!(
                RedisModule_Call,
                self.raw,
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

    /// Whether modules may be asked to bear it. The number of the option may mean something else to a
    /// server of the other family.
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
            let data = api!(RedisModule_GetServerInfo, self.raw, c"server".as_ptr());
            let field = c"valkey_version".as_ptr();
            let version = api!(RedisModule_ServerInfoGetFieldC, data, field);
            let text = (!version.is_null()).then(|| CStr::from_ptr(version).to_string_lossy());
            let parsed = text.map(|text| {
                let mut numbers = text.split('.').map(|part| part.parse().unwrap_or(0));
                let mut next = || numbers.next().unwrap_or(0);
                (next(), next(), next())
            });
            api!(RedisModule_FreeServerInfo, self.raw, data);
            parsed
        }
    }

    /// Whether the slot is on its way to this node, in a cluster. Written into the node's own line of
    /// CLUSTER NODES, as `[93-<-` and the id of the node that it comes from.
    pub fn imports_slot(self, slot: u16) -> bool {
        let mark = format!("[{slot}-<-");
        let is_marked = |own: &[u8]| own.windows(mark.len()).any(|word| word == mark.as_bytes());
        self.with_nodes(|nodes| own_line(nodes).is_some_and(is_marked))
    }

    /// Of a replica in a cluster: whether its master serves the slot, by the replica's view of things.
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

    /// What CLUSTER NODES says; nothing where the server refuses.
    fn with_nodes<T>(self, read: impl FnOnce(&[u8]) -> T) -> T {
        // SAFETY: the format names a C string; the bytes are the reply's, which is freed here.
        unsafe {
            let reply = api!(
                RedisModule_Call,
                self.raw,
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

    /// Whether this node serves all of these keys, in a cluster: a keyed call is refused where not. So it
    /// is for several keys of a slot on its way, of which some are here and some are not.
    pub fn serves(self, keys: &[KeyName<'_>]) -> bool {
        // SAFETY: the format names an array of module strings, as key names are, and its length; the reply is freed here.
        unsafe {
            let reply = api!(
                RedisModule_Call,
                self.raw,
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

/// Behind eight other words, as `93` or `0-5460`.
fn slots_in(line: &[u8]) -> impl Iterator<Item = std::ops::RangeInclusive<u16>> + '_ {
    line.split(|&byte| byte == b' ').skip(8).filter_map(|word| {
        let word = std::str::from_utf8(word).ok()?;
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        Some(first.parse().ok()?..=last.parse().ok()?)
    })
}
