//! Keys of a command that its key specification does not name: the server has checked the first one
//! alone, so the command checks the rest, as the server would.

use super::{api, bytes_of, Args, Ctx, KeyName, OwnString, RawString, Refusal, OK};
use redis_module::raw;
use std::ffi::c_int;
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::ptr::null_mut;

/// Refuses a call whose user may not run the command on one of those arguments. Each is checked as the
/// only key of such a call, with all the rest of it in place: a user may have one set of rules for
/// the command and another for the key, which together do not allow it.
pub fn check_keys(ctx: Ctx<'_>, args: Args<'_>, keys: Range<usize>) -> Result<(), Refusal> {
    if keys.is_empty() {
        return Ok(());
    }
    let Some(name) = current_user(ctx) else {
        return Ok(());
    };
    let Some(user) = User::named(ctx, name) else {
        // Of a module's own making, so unknown here.
        return Err(refusal(ctx));
    };
    if user.may_do_all() {
        return Ok(());
    }
    let (Some(command), rest) = (args.key(0), &args.all()[keys.end..]) else {
        return Ok(());
    };
    for key in keys.filter_map(|index| args.key(index)) {
        let mut call = [&[command, key], rest].concat();
        if !user.may_call(&mut call) {
            user.log_denied_key(ctx, key);
            return Err(refusal(ctx));
        }
    }
    Ok(())
}

/// A command that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call(usize);

const MOST_WORDS: usize = 6;

impl Call {
    /// Whole calls but for the key, which stands behind the name: newer servers allow none of fewer words.
    const WORDS: [&[&str]; 3] = [
        &["dq.bpop", "0"],
        &["dq.await", "0", "id"],
        &["dq.btouch", "0", "IDS", "1", "id", "1"],
    ];
    pub const BPOP: Call = Call(0);
    pub const AWAIT: Call = Call(1);
    pub const BTOUCH: Call = Call(2);
}

/// Whether the user of that client may, by the rules of now, make that call on this key.
pub fn may_call(ctx: Ctx<'_>, client: u64, call: Call, key: KeyName<'_>) -> bool {
    let Some(name) = user_of_client(ctx, client) else {
        return true;
    };
    WORDS.with(|words| {
        let words = &words[call.0];
        let mut call = [key; MOST_WORDS + 1];
        if let [name, rest @ ..] = &words[..] {
            call[0] = name.name();
            let places = call[2..].iter_mut();
            places.zip(rest).for_each(|(at, word)| *at = word.name());
        }
        let call = &mut call[..=words.len()];
        User::named(ctx, name).is_some_and(|user| user.may_call(call))
    })
}

thread_local! {
    /// Asked for at each wake-up, so made once, and never freed: at the end there may be no server to free it.
    static WORDS: ManuallyDrop<[Vec<OwnString>; 3]> = ManuallyDrop::new(Call::WORDS.map(|words| {
        let own = |word: &&str| OwnString::new(word.as_bytes());
        words.iter().map(own).collect()
    }));
}

/// Replies so to the client of this context, which may not use this key.
pub fn deny(ctx: Ctx<'_>, key: &[u8]) {
    let name = user_of_client(ctx, ctx.client_id());
    if let Some(user) = name.and_then(|name| User::named(ctx, name)) {
        user.log_denied_key(ctx, OwnString::new(key).name());
    }
    ctx.reply_error(&refusal(ctx).0);
}

/// None where it is gone, or has none, so that all is allowed to it.
fn user_of_client(ctx: Ctx<'_>, client: u64) -> Option<RawString> {
    // SAFETY: live context; the server looks the client up.
    let name = unsafe { api!(RedisModule_GetClientUserNameById, ctx.raw(), client) };
    (!name.is_null()).then_some(name)
}

/// In the server's own words.
fn refusal(ctx: Ctx<'_>) -> Refusal {
    Refusal(
        if ctx.is_older_than_7_2() {
            "NOPERM this user has no permissions to access one of the keys used as arguments"
        } else {
            "NOPERM No permissions to access a key"
        }
        .into(),
    )
}

/// Who runs the command; nobody, to whom all is allowed, where it is the server or a module itself.
fn current_user(ctx: Ctx<'_>) -> Option<RawString> {
    // Servers up to 7.2 crash if asked for the name of nobody. A call as the current user says
    // that there is none before it finds that there is no such command.
    // SAFETY: live context, static strings that end in NUL, no arguments.
    let reply = unsafe { api!(RedisModule_Call, ctx.raw(), c"dq.".as_ptr(), c"C".as_ptr()) };
    if reply.is_null() && io::Error::last_os_error().raw_os_error() == Some(libc::ENOTSUP) {
        return None;
    }
    // SAFETY: the context has a user.
    let name = unsafe { api!(RedisModule_GetCurrentUserName, ctx.raw()) };
    (!name.is_null()).then_some(name)
}

/// One that the server's ACL knows.
struct User(*mut raw::RedisModuleUser);

impl User {
    /// Frees the name.
    fn named(ctx: Ctx<'_>, name: RawString) -> Option<User> {
        // SAFETY: a string just made for us, freed once.
        let user = unsafe {
            let user = api!(RedisModule_GetModuleUserFromUserName, name);
            api!(RedisModule_FreeString, ctx.raw(), name);
            user
        };
        (!user.is_null()).then_some(User(user))
    }

    /// All keys and all commands, by the first set of rules, which stands before the parentheses.
    fn may_do_all(&self) -> bool {
        // SAFETY: a live user; the string is ours to free, and read before.
        unsafe {
            let rules = api!(RedisModule_GetModuleUserACLString, self.0);
            if rules.is_null() {
                return false;
            }
            let text = bytes_of(rules);
            let first = text.split(|&byte| byte == b'(').next().unwrap_or_default();
            let words = || first.split(|&byte| byte == b' ');
            let has = |wanted: &[u8]| words().any(|word| word == wanted);
            let all = has(b"~*") && has(b"+@all") && !words().any(|word| word.starts_with(b"-"));
            api!(RedisModule_FreeString, null_mut(), rules);
            all
        }
    }

    fn may_call(&self, call: &mut [KeyName<'_>]) -> bool {
        let len = call.len() as c_int;
        // SAFETY: a live user and strings of the running command, which are only read.
        let allowed = unsafe {
            api!(
                RedisModule_ACLCheckCommandPermissions,
                self.0,
                call.as_mut_ptr().cast(),
                len
            )
        };
        allowed == OK
    }

    fn log_denied_key(&self, ctx: Ctx<'_>, key: KeyName<'_>) {
        let reason = raw::RedisModuleACLLogEntryReason_REDISMODULE_ACL_LOG_KEY;
        // SAFETY: live context, user and string; the server copies the key's name.
        unsafe {
            api!(
                RedisModule_ACLAddLogEntry,
                ctx.raw(),
                self.0,
                key.raw(),
                reason
            )
        };
    }
}

impl Drop for User {
    fn drop(&mut self) {
        // SAFETY: made in `named`, freed once; the user itself belongs to the server.
        unsafe { api!(RedisModule_FreeModuleUser, self.0) };
    }
}
