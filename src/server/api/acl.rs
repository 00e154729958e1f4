//! ACL checks of keys that a command's key specification does not name. The server has checked only
//! the first key, so the command checks the others, as the server would.

use super::ctx::Ctx;
use super::entry::Refusal;
use super::function::{api, bytes_of, Args, KeyName, OwnString, RawString, OK};
use redis_module::raw;
use std::ffi::c_int;
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::ptr::null_mut;

/// Refuses a call if its user may not run the command on one of these arguments. Each is checked as
/// the only key of the call, with the call's other arguments in place. For a user may have one set
/// of rules for the command and another for the key, which together do not allow the call.
pub fn check_keys(ctx: Ctx<'_>, args: Args<'_>, keys: Range<usize>) -> Result<(), Refusal> {
    if keys.is_empty() {
        return Ok(());
    }
    let Some(name) = current_user(ctx) else {
        return Ok(());
    };
    let Some(user) = User::named(ctx, name) else {
        // A user that a module created, so unknown here.
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

/// A command that can block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call(usize);

const MOST_WORDS: usize = 6;

impl Call {
    /// Whole calls without the key, which comes after the name. Newer servers allow no call with
    /// fewer words.
    const WORDS: [&[&str]; 3] = [
        &["dq.bpop", "0"],
        &["dq.await", "0", "id"],
        &["dq.btouch", "0", "IDS", "1", "id", "1"],
    ];
    pub const BPOP: Call = Call(0);
    pub const AWAIT: Call = Call(1);
    pub const BTOUCH: Call = Call(2);
}

/// Whether the client's user may, by the current rules, make this call on this key.
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
    /// Read at each wake-up, so created once, and never freed: at the end there may be no server to
    /// free it.
    static WORDS: ManuallyDrop<[Vec<OwnString>; 3]> = ManuallyDrop::new(Call::WORDS.map(|words| {
        let own = |word: &&str| OwnString::new(word.as_bytes());
        words.iter().map(own).collect()
    }));
}

/// Replies to the client of this context that it may not use this key, and logs that.
pub fn deny(ctx: Ctx<'_>, key: &[u8]) {
    let name = user_of_client(ctx, ctx.client_id());
    if let Some(user) = name.and_then(|name| User::named(ctx, name)) {
        user.log_denied_key(ctx, OwnString::new(key).name());
    }
    ctx.reply_error(&refusal(ctx).0);
}

/// The user who runs the command; `None` if it is the server or a module itself, to which all is allowed.
pub struct Caller(Option<Vec<u8>>);

impl Caller {
    pub fn of(ctx: Ctx<'_>) -> Self {
        Caller(current_user(ctx).map(|name| ctx.own(name)))
    }

    pub fn is_user_of(&self, ctx: Ctx<'_>, client: u64) -> bool {
        let user = user_of_client(ctx, client).map(|name| ctx.own(name));
        self.0.is_none() || self.0 == user
    }
}

/// The client's user. None if the client is gone, or has no user: then all is allowed.
fn user_of_client(ctx: Ctx<'_>, client: u64) -> Option<RawString> {
    // SAFETY: live context; the server looks the client up.
    let name = unsafe { api!(RedisModule_GetClientUserNameById, ctx.raw(), client) };
    (!name.is_null()).then_some(name)
}

/// The refusal, in the server's words.
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

/// The user who runs the command. None if it is the server or a module itself, to which all is allowed.
fn current_user(ctx: Ctx<'_>) -> Option<RawString> {
    // Servers up to 7.2 crash if asked for the name of the current user where there is none. A call as
    // the current user reports a missing user before it reports that the command does not exist.
    // SAFETY: live context, static strings that end in NUL, no arguments.
    let reply = unsafe { api!(RedisModule_Call, ctx.raw(), c"dq.".as_ptr(), c"C".as_ptr()) };
    if reply.is_null() && io::Error::last_os_error().raw_os_error() == Some(libc::ENOTSUP) {
        return None;
    }
    // SAFETY: the context has a user.
    let name = unsafe { api!(RedisModule_GetCurrentUserName, ctx.raw()) };
    (!name.is_null()).then_some(name)
}

/// A user that the server's ACL knows.
struct User(*mut raw::RedisModuleUser);

impl User {
    /// Looks the user up, and frees the name.
    fn named(ctx: Ctx<'_>, name: RawString) -> Option<User> {
        // SAFETY: a string just made for us, freed once.
        let user = unsafe {
            let user = api!(RedisModule_GetModuleUserFromUserName, name);
            api!(RedisModule_FreeString, ctx.raw(), name);
            user
        };
        (!user.is_null()).then_some(User(user))
    }

    /// Whether the user may use all keys and all commands by the first set of rules, the one before
    /// the parentheses.
    fn may_do_all(&self) -> bool {
        // SAFETY: a live user; the string is ours to free, and is read before that.
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
