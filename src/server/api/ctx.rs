//! The context of a callback, the server's log, and what keeps a panic from ending the server.

use super::function::{api, bytes_of, KeyName, RawString, OK};
use redis_module::raw;
use std::ffi::{c_char, c_int, CStr};
use std::marker::PhantomData;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// A panic's payload.
pub type Panic = Box<dyn std::any::Any + Send>;

pub const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

/// The reply of a command that panicked.
pub const BUG: &str = "ERR internal error, see the server's log";

/// Runs a body so that a panic, which is a bug, ends the body and not the server.
pub fn caught<T>(body: impl FnOnce() -> T) -> Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(body))
}

/// A key's name in the log: the beginning of it.
pub fn shown(name: &[u8]) -> String {
    name[..name.len().min(128)].escape_ascii().to_string()
}

pub fn log_bug(what: &str, panic: &Panic) {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or(panic.downcast_ref::<&str>().copied())
        .unwrap_or("no text");
    log(c"warning", &format!("bug in {what}, please report: {text}"));
}

/// Logs the place of each panic to the server's log, whatever RUST_BACKTRACE says. It replaces
/// std's own hook, which calls the C library's `free`, and that need not be the server's.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        if let Some(place) = panic.location() {
            log(c"warning", &format!("panic at {place}"));
        }
    }));
}

/// As [`caught`], for a callback's whole body: logs a panic and returns `otherwise`.
pub fn guarded<T>(what: &str, otherwise: T, body: impl FnOnce() -> T) -> T {
    caught(body).unwrap_or_else(|panic| {
        log_bug(what, &panic);
        otherwise
    })
}

/// Writes to the server's log; the text may contain any bytes.
pub fn log(level: &CStr, text: &str) {
    let text: Vec<u8> = text.bytes().filter(|&byte| byte != 0).chain([0]).collect();
    // SAFETY: a null context is allowed; level, format and text end in NUL, and `%s` takes one.
    unsafe {
        api!(
            RedisModule_Log,
            std::ptr::null_mut(),
            level.as_ptr(),
            c"%s".as_ptr(),
            text.as_ptr().cast::<c_char>(),
        );
    }
}

/// The context of the callback that is running.
#[derive(Clone, Copy)]
pub struct Ctx<'a> {
    raw: *mut raw::RedisModuleCtx,
    callback: PhantomData<&'a ()>,
}

/// What RM_GetContextFlags says.
#[derive(Clone, Copy)]
pub struct Flags(c_int);

impl Flags {
    fn has(self, flag: u32) -> bool {
        self.0 & flag as c_int != 0
    }
    pub fn is_master(self) -> bool {
        self.has(raw::REDISMODULE_CTX_FLAGS_MASTER)
    }
    pub fn is_loading(self) -> bool {
        self.has(raw::REDISMODULE_CTX_FLAGS_LOADING | raw::REDISMODULE_CTX_FLAGS_ASYNC_LOADING)
    }
    /// Loading while clients are not served.
    pub fn is_loading_alone(self) -> bool {
        self.is_loading() && !self.has(raw::REDISMODULE_CTX_FLAGS_ASYNC_LOADING)
    }
    /// A replica that takes writes only from its master.
    pub fn is_read_only(self) -> bool {
        self.has(raw::REDISMODULE_CTX_FLAGS_READONLY)
    }
    /// The command is trusted: it comes from the master, or from the file being loaded. While a replica loads beside
    /// the data that it serves, commands come from its clients.
    pub fn is_trusted(self) -> bool {
        self.has(raw::REDISMODULE_CTX_FLAGS_LOADING | raw::REDISMODULE_CTX_FLAGS_REPLICATED)
    }
    pub fn denies_blocking(self) -> bool {
        self.has(
            raw::REDISMODULE_CTX_FLAGS_DENY_BLOCKING
                | raw::REDISMODULE_CTX_FLAGS_MULTI
                | raw::REDISMODULE_CTX_FLAGS_LUA,
        )
    }
    pub fn has_aof(self) -> bool {
        self.has(raw::REDISMODULE_CTX_FLAGS_AOF)
    }
    pub fn is_cluster(self) -> bool {
        self.has(raw::REDISMODULE_CTX_FLAGS_CLUSTER)
    }
    /// More is in use than `maxmemory`.
    pub fn is_out_of_memory(self) -> bool {
        self.has(raw::REDISMODULE_CTX_FLAGS_OOM)
    }
}

impl<'a> Ctx<'a> {
    /// # Safety
    /// `raw` is the context that the server passed to the callback that runs now, and `'a` ends
    /// with it.
    pub unsafe fn new(raw: *mut raw::RedisModuleCtx) -> Self {
        Ctx {
            raw,
            callback: PhantomData,
        }
    }

    pub fn raw(self) -> *mut raw::RedisModuleCtx {
        self.raw
    }

    pub fn flags(self) -> Flags {
        // SAFETY: the context is live, as `Ctx` promises; so below.
        Flags(unsafe { api!(RedisModule_GetContextFlags, self.raw) })
    }

    /// As the server tells modules: of Valkey a Redis that it is compatible with.
    pub fn redis_version(self) -> (u32, u32, u32) {
        // SAFETY: takes no arguments.
        let packed = unsafe { api!(RedisModule_GetServerVersion) } as u32;
        (packed >> 16, packed >> 8 & 0xff, packed & 0xff)
    }

    pub fn is_older_than_7_2(self) -> bool {
        self.redis_version() < (7, 2, 0)
    }

    pub fn selected_db(self) -> c_int {
        // SAFETY: live context.
        unsafe { api!(RedisModule_GetSelectedDb, self.raw) }
    }

    pub fn client_id(self) -> u64 {
        // SAFETY: live context.
        unsafe { api!(RedisModule_GetClientId, self.raw) }
    }

    /// The name that a connection has now, or else its address; `None` if it is closed, or the client was never a
    /// connection, as that of a script.
    pub fn client_named(self, id: u64) -> Option<Vec<u8>> {
        let mut info = raw::RedisModuleClientInfo {
            version: raw::REDISMODULE_CLIENTINFO_VERSION.into(),
            flags: 0,
            id: 0,
            addr: [0; 46],
            port: 0,
            db: 0,
        };
        // SAFETY: a live structure of the version that it says.
        if unsafe { api!(RedisModule_GetClientInfoById, (&raw mut info).cast(), id) } != OK {
            return None;
        }
        // SAFETY: the load filled the table of functions, and nothing changes it. Redis 7.0.3 is the first to have this one.
        let name_of = unsafe { raw::RedisModule_GetClientNameById };
        // SAFETY: live context; the server looks the client up.
        let name = name_of.map(|name_of| unsafe { name_of(self.raw, id) });
        if let Some(name) = name.filter(|name| !name.is_null()) {
            return Some(self.own(name));
        }
        let address = info.addr.iter().map(|&byte| byte as u8);
        let address: Vec<u8> = address.take_while(|&byte| byte != 0).collect();
        let address = String::from_utf8_lossy(&address);
        let text = match address.contains(':') {
            true => format!("[{address}]:{}", info.port),
            false => format!("{address}:{}", info.port),
        };
        Some(text.into_bytes())
    }

    /// The text of a string that was made for us, which is freed.
    pub fn own(self, text: RawString) -> Vec<u8> {
        // SAFETY: a live string, read before it is freed, once.
        unsafe {
            let bytes = bytes_of(text).to_vec();
            api!(RedisModule_FreeString, self.raw, text);
            bytes
        }
    }

    /// Selects the database; false if it does not exist.
    pub fn select_db(self, db: c_int) -> bool {
        // SAFETY: live context; the server checks the number.
        unsafe { api!(RedisModule_SelectDb, self.raw, db) == OK }
    }

    /// The databases that have keys.
    pub fn databases_in_use(self) -> impl Iterator<Item = c_int> + use<'a> {
        let databases = (0..).take_while(move |&db| self.select_db(db));
        // SAFETY: live context.
        databases.filter(move |_| unsafe { api!(RedisModule_DbSize, self.raw) } > 0)
    }

    /// Whether nothing may be sent to replicas just now (CLIENT PAUSE, FAILOVER).
    pub fn is_paused(self) -> bool {
        // SAFETY: takes no arguments.
        unsafe { api!(RedisModule_AvoidReplicaTraffic) != 0 }
    }

    pub fn reply_array(self, len: usize) {
        // SAFETY: live context.
        unsafe { api!(RedisModule_ReplyWithArray, self.raw, len as _) };
    }

    /// An array whose length [`Ctx::set_array_len`] sets once its elements are written.
    pub fn reply_array_of_unknown_len(self) {
        // SAFETY: as above.
        unsafe {
            api!(
                RedisModule_ReplyWithArray,
                self.raw,
                raw::REDISMODULE_POSTPONED_LEN as _
            )
        };
    }

    pub fn set_array_len(self, len: usize) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplySetArrayLength, self.raw, len as _) };
    }

    /// Begins a map; in RESP2 the server makes it a flat array.
    pub fn reply_map(self, len: usize) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithMap, self.raw, len as _) };
    }

    pub fn reply_bytes(self, bytes: &[u8]) {
        // SAFETY: as above.
        unsafe {
            api!(
                RedisModule_ReplyWithStringBuffer,
                self.raw,
                bytes.as_ptr().cast(),
                bytes.len()
            )
        };
    }

    pub fn reply_integer(self, integer: i64) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithLongLong, self.raw, integer) };
    }

    pub fn reply_simple(self, text: &CStr) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithSimpleString, self.raw, text.as_ptr()) };
    }

    pub fn reply_null(self) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithNull, self.raw) };
    }

    pub fn reply_null_array(self) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithNullArray, self.raw) };
    }

    /// Replies an error. The text is all of it, with its code.
    pub fn reply_error(self, text: &str) {
        let text: Vec<u8> = text.bytes().filter(|&byte| byte != 0).chain([0]).collect();
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithError, self.raw, text.as_ptr().cast()) };
    }

    pub fn signal_modified(self, key: KeyName<'_>) {
        // SAFETY: live context, and a live string, as `KeyName` promises; so below.
        unsafe { api!(RedisModule_SignalModifiedKey, self.raw, key.raw()) };
    }

    pub fn notify(self, event: &CStr, key: KeyName<'_>) {
        // SAFETY: as above; the event's name is static.
        unsafe {
            api!(
                RedisModule_NotifyKeyspaceEvent,
                self.raw,
                raw::REDISMODULE_NOTIFY_MODULE as c_int,
                event.as_ptr(),
                key.raw()
            )
        };
    }

    /// Raises an event as a built-in command does for its key.
    pub fn notify_generic(self, event: &CStr, key: KeyName<'_>) {
        // SAFETY: as above.
        unsafe {
            api!(
                RedisModule_NotifyKeyspaceEvent,
                self.raw,
                raw::REDISMODULE_NOTIFY_GENERIC as c_int,
                event.as_ptr(),
                key.raw()
            )
        };
    }

    /// Sends `command key bytes` to replicas and AOF, in the running transaction.
    pub fn replicate(self, command: &CStr, key: KeyName<'_>, bytes: &[u8]) {
        // SAFETY: the format names what follows: a module string, and a buffer with its length.
        unsafe {
            api!(
                RedisModule_Replicate,
                self.raw,
                command.as_ptr(),
                c"sb".as_ptr(),
                key.raw(),
                bytes.as_ptr().cast::<c_char>(),
                bytes.len()
            )
        };
    }

    pub fn replicate_verbatim(self) {
        // SAFETY: live context of a command.
        unsafe { api!(RedisModule_ReplicateVerbatim, self.raw) };
    }
}
