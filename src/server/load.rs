//! The module's load. A server that starts may load it more than once: a configuration file names it, and so does
//! `--loadmodule` or an included file; CONFIG REWRITE, which Sentinel sends at each failover, writes such a line too.
//! With an error the server would not start. So a later load succeeds, and does nothing: it is a module of the same
//! name, and the server goes on to know the first one by it. On a server that has started, a later load is refused:
//! some servers would put settings of MODULE LOADEX into the second module, and crash or drop the first.

use super::api::{api, guarded, log, Args, Ctx, KeyName, RawString, ERR, OK};
use super::config::{arguments, Argument};
use redis_module::raw;
use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::ptr::null_mut;
use std::sync::OnceLock;

const NAME: &CStr = c"dq";
const VERSION: c_int = 100;

/// The name under which the first load leaves its arguments for other copies of this code.
const ARGUMENTS_NAME: &CStr = c"dq_arguments";
/// Name and value of each argument of the first load, a line each.
static ARGUMENTS: OnceLock<CString> = OnceLock::new();

/// # Safety
/// Called by the server as the module's `RedisModule_OnLoad`, with its arguments. `first` does the work.
pub unsafe fn on_load(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut RawString,
    argc: c_int,
    first: fn(Ctx<'_>, &[Argument]) -> bool,
) -> c_int {
    // SAFETY: the server's context. Before this call there is no memory to be had.
    unsafe { raw::Export_RedisModule_InitAPI(ctx) };
    guarded("the load", ERR, || {
        // SAFETY: the context and the arguments of the load, which is running.
        let (ctx, words) = unsafe { (Ctx::new(ctx), Args::new(argv, argc)) };
        let args = arguments(words.all().iter().map(|word: &KeyName<'_>| word.bytes()));
        // SAFETY: a static string that ends in NUL.
        let is_first = unsafe { api!(RedisModule_IsModuleNameBusy, NAME.as_ptr()) == 0 };
        let is_loaded = match is_first {
            true => take_name(ctx) && first(ctx, &args) && leave_arguments(ctx, &args),
            false if has_clients(ctx) => {
                log(c"warning", "dq is loaded already, as it can be only once");
                false
            }
            false => take_name(ctx) && is_again(ctx, &args),
        };
        if is_loaded {
            OK
        } else {
            ERR
        }
    })
}

fn take_name(ctx: Ctx<'_>) -> bool {
    let api_version = raw::REDISMODULE_APIVER_1 as c_int;
    // SAFETY: the context of the load; the server copies the name.
    unsafe {
        api!(
            RedisModule_SetModuleAttribs,
            ctx.raw(),
            NAME.as_ptr(),
            VERSION,
            api_version
        )
    };
    true
}

fn lines(args: &[Argument]) -> Vec<String> {
    let line = |arg: &Argument| format!("{} {}", arg.name, arg.value.as_deref().unwrap_or(""));
    args.iter().map(line).collect()
}

fn leave_arguments(ctx: Ctx<'_>, args: &[Argument]) -> bool {
    let text = CString::new(lines(args).join("\n")).unwrap_or_default();
    let text = ARGUMENTS.get_or_init(|| text).as_ptr().cast_mut();
    // SAFETY: the context of the load; the server copies the name, and the text stays, as this module does.
    unsafe {
        let export = api!(
            RedisModule_ExportSharedAPI,
            ctx.raw(),
            ARGUMENTS_NAME.as_ptr(),
            text.cast::<c_void>()
        );
        export == OK
    }
}

/// Whether the module that has the name is this one.
fn is_again(ctx: Ctx<'_>, args: &[Argument]) -> bool {
    let Some(first) = arguments_of_first(ctx) else {
        log(c"warning", "another module with the name dq is loaded");
        return false;
    };
    let mut ignored = lines(args);
    ignored.retain(|line| !first.split('\n').any(|known| known == line));
    if ignored.is_empty() {
        log(
            c"notice",
            "dq is loaded already: loadmodule names it more than once",
        );
    } else {
        let text = "dq is loaded already: loadmodule names it more than once. Ignored here:";
        log(c"warning", &format!("{text} {}", ignored.join(", ")));
    }
    true
}

fn arguments_of_first(ctx: Ctx<'_>) -> Option<String> {
    let own = ARGUMENTS.get().map(|text| text.as_ptr());
    // SAFETY: the context has a module; the name ends in NUL. All copies leave a text that ends in NUL, and stays.
    let text = unsafe {
        let text = own.unwrap_or_else(|| {
            api!(RedisModule_GetSharedAPI, ctx.raw(), ARGUMENTS_NAME.as_ptr()).cast::<c_char>()
        });
        (!text.is_null()).then(|| CStr::from_ptr(text))?
    };
    Some(text.to_string_lossy().into_owned())
}

/// Whether the server serves clients, as it does once it has started.
fn has_clients(ctx: Ctx<'_>) -> bool {
    // SAFETY: the context of the load; the server looks the field up, and frees what it made.
    unsafe {
        let info = api!(RedisModule_GetServerInfo, ctx.raw(), c"clients".as_ptr());
        let field = c"connected_clients".as_ptr();
        let count = api!(
            RedisModule_ServerInfoGetFieldUnsigned,
            info,
            field,
            null_mut()
        );
        api!(RedisModule_FreeServerInfo, ctx.raw(), info);
        count > 0
    }
}
