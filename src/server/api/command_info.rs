//! What the server shows about a command: COMMAND INFO, COMMAND DOCS, ACL CAT.
//!
//! A command is described by plain data, [`About`]. For one call it is converted to the server's structs, and the
//! server copies all that they point to. A server that lacks the API, or refuses a description, serves the command
//! without it.

use super::ctx::{log, Ctx};
use super::entry::Entry;
use super::function::{api, OK};
use redis_module::raw;
use std::ffi::{c_char, c_int, CStr, CString};
use std::ptr::{null, null_mut};

/// The module's own ACL category, beside the server's.
const CATEGORY: &CStr = c"dq";
/// The first version of the module with all of these commands.
const SINCE: &CStr = c"0.1.0";

/// The description of a command.
pub struct About {
    pub name: &'static CStr,
    pub run: Entry,
    /// What RM_CreateCommand calls flags, separated by spaces.
    pub flags: &'static CStr,
    pub summary: &'static CStr,
    pub complexity: &'static CStr,
    /// Hints to clients and proxies, separated by spaces.
    pub tips: &'static CStr,
    /// The number of arguments, with the name; -n is n or more.
    pub arity: c_int,
    /// What the command does to its key, which is the first argument. Only this key can be
    /// declared. Others could only be found by code of the module, and a server with I/O threads
    /// looks keys up on those threads, where no code of a module may run.
    pub key: Option<Access>,
    /// ACL categories of the server, separated by spaces.
    pub categories: &'static CStr,
    pub args: &'static [Arg],
}

/// What a command does to a key: the ACL asks for the right to read what is read, and to write what
/// is written.
#[derive(Clone, Copy)]
pub enum Access {
    /// Shows data.
    Read,
    /// Shows only how much there is.
    Measure,
    /// Changes what is there.
    Update,
    /// Takes away what is there.
    Delete,
    /// Changes what is there, and shows it.
    ReadUpdate,
}

impl Access {
    const fn flags(self) -> u32 {
        match self {
            Access::Read => raw::REDISMODULE_CMD_KEY_RO | raw::REDISMODULE_CMD_KEY_ACCESS,
            Access::Measure => raw::REDISMODULE_CMD_KEY_RO,
            Access::Update => raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_UPDATE,
            Access::Delete => raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_DELETE,
            Access::ReadUpdate => {
                raw::REDISMODULE_CMD_KEY_RW
                    | raw::REDISMODULE_CMD_KEY_ACCESS
                    | raw::REDISMODULE_CMD_KEY_UPDATE
            }
        }
    }
}

/// One argument, or several that belong together.
#[derive(Clone, Copy)]
pub struct Arg {
    name: &'static CStr,
    kind: Kind,
    /// The word before the value, or the word that is the argument.
    token: Option<&'static CStr>,
    /// What hints show instead of the name.
    shown: Option<&'static CStr>,
    flags: u32,
    /// Its word has a fixed place, and is not an option.
    in_place: bool,
}

/// The word of an option, and whether a value follows it.
#[derive(Clone, Copy)]
pub struct OptionWord {
    pub text: &'static str,
    pub takes_value: bool,
}

#[derive(Clone, Copy)]
enum Kind {
    Key,
    String,
    Integer,
    Double,
    Pattern,
    UnixTime,
    Word,
    OneOf(&'static [Arg]),
    Block(&'static [Arg]),
}

impl Arg {
    const fn new(name: &'static CStr, kind: Kind) -> Self {
        Arg {
            name,
            kind,
            token: None,
            shown: None,
            flags: raw::REDISMODULE_CMD_ARG_NONE,
            in_place: false,
        }
    }
    /// A key, found by the command's key specification.
    pub const fn key(name: &'static CStr) -> Self {
        Arg::new(name, Kind::Key)
    }
    pub const fn string(name: &'static CStr) -> Self {
        Arg::new(name, Kind::String)
    }
    pub const fn integer(name: &'static CStr) -> Self {
        Arg::new(name, Kind::Integer)
    }
    pub const fn double(name: &'static CStr) -> Self {
        Arg::new(name, Kind::Double)
    }
    pub const fn pattern(name: &'static CStr) -> Self {
        Arg::new(name, Kind::Pattern)
    }
    pub const fn unix_time(name: &'static CStr) -> Self {
        Arg::new(name, Kind::UnixTime)
    }
    /// A word that stands for itself.
    pub const fn word(name: &'static CStr, token: &'static CStr) -> Self {
        Arg::new(name, Kind::Word).after(token)
    }
    pub const fn one_of(name: &'static CStr, args: &'static [Arg]) -> Self {
        Arg::new(name, Kind::OneOf(args))
    }
    pub const fn block(name: &'static CStr, args: &'static [Arg]) -> Self {
        Arg::new(name, Kind::Block(args))
    }

    /// The argument follows this word.
    pub const fn after(self, token: &'static CStr) -> Self {
        Arg {
            token: Some(token),
            ..self
        }
    }
    pub const fn shown(self, text: &'static CStr) -> Self {
        Arg {
            shown: Some(text),
            ..self
        }
    }
    pub const fn optional(self) -> Self {
        Arg {
            flags: self.flags | raw::REDISMODULE_CMD_ARG_OPTIONAL,
            ..self
        }
    }
    pub const fn multiple(self) -> Self {
        Arg {
            flags: self.flags | raw::REDISMODULE_CMD_ARG_MULTIPLE,
            ..self
        }
    }
    /// The place of its word is fixed by the arguments before it.
    pub const fn in_place(self) -> Self {
        Arg {
            in_place: true,
            ..self
        }
    }

    /// The options among these arguments; there must be `N`.
    pub const fn options<const N: usize>(args: &[Arg]) -> [OptionWord; N] {
        let none = OptionWord {
            text: "",
            takes_value: false,
        };
        let (words, len) = Arg::add_options(args, [none; N], 0);
        assert!(len == N, "an option that its command does not read");
        words
    }

    const fn add_options<const N: usize>(
        args: &[Arg],
        mut words: [OptionWord; N],
        mut len: usize,
    ) -> ([OptionWord; N], usize) {
        let mut at = 0;
        while at < args.len() {
            match (args[at].token, args[at].kind) {
                _ if args[at].in_place => {}
                (Some(token), kind) => {
                    let Ok(text) = token.to_str() else {
                        panic!("a word that is no text")
                    };
                    if len < N {
                        words[len] = OptionWord {
                            text,
                            takes_value: !matches!(kind, Kind::Word),
                        };
                    }
                    len += 1;
                }
                (None, Kind::OneOf(parts) | Kind::Block(parts)) => {
                    (words, len) = Arg::add_options(parts, words, len);
                }
                (None, _) => {}
            }
            at += 1;
        }
        (words, len)
    }
}

/// Called at load. The command's key, if it has one, is the first argument.
pub fn register(ctx: Ctx<'_>, about: &About) -> bool {
    let key = c_int::from(about.key.is_some());
    // SAFETY: live context; the server copies name and flags.
    let created = unsafe {
        api!(
            RedisModule_CreateCommand,
            ctx.raw(),
            about.name.as_ptr(),
            Some(about.run),
            about.flags.as_ptr(),
            key,
            key,
            key
        )
    };
    created == OK
}

/// Called at load, after the commands are registered: describes them to the server.
pub fn describe_all(ctx: Ctx<'_>, commands: impl Iterator<Item = &'static About>) {
    let own_category = add_category(ctx);
    for about in commands {
        describe(ctx, about, own_category);
    }
}

fn describe(ctx: Ctx<'_>, about: &About, own_category: bool) {
    let Some(command) = find(ctx, about.name) else {
        return complain(about, "the server does not find it");
    };
    if !set_info(command, about) {
        complain(about, "the server refuses its description");
    }
    if !set_categories(command, about, own_category) {
        complain(about, "the server refuses its ACL categories");
    }
}

fn complain(about: &About, what: &str) {
    let name = about.name.to_string_lossy();
    log(c"warning", &format!("command {name}: {what}"));
}

/// `None` also if the server lacks the API.
fn find(ctx: Ctx<'_>, name: &CStr) -> Option<*mut raw::RedisModuleCommand> {
    // SAFETY: the pointer was set, or left empty, before the load ran.
    unsafe { raw::RedisModule_GetCommand }?;
    // SAFETY: live context; the name ends in NUL and is only read.
    let command = unsafe { api!(RedisModule_GetCommand, ctx.raw(), name.as_ptr()) };
    (!command.is_null()).then_some(command)
}

/// Whether the category could be added. Redis 7.4 and Valkey 8.0 are the first with the API.
fn add_category(ctx: Ctx<'_>) -> bool {
    // SAFETY: as in `find`.
    if unsafe { raw::RedisModule_AddACLCategory }.is_none() {
        return false;
    }
    // SAFETY: live context of the load; the server copies the name.
    unsafe { api!(RedisModule_AddACLCategory, ctx.raw(), CATEGORY.as_ptr()) == OK }
}

/// True also if the server lacks the API (before 7.2).
fn set_categories(
    command: *mut raw::RedisModuleCommand,
    about: &About,
    own_category: bool,
) -> bool {
    // SAFETY: as in `find`.
    if unsafe { raw::RedisModule_SetCommandACLCategories }.is_none() {
        return true;
    }
    let own = if own_category { CATEGORY } else { c"" };
    let parts = [about.categories.to_bytes(), own.to_bytes()];
    let names = parts.join(&b' ');
    let Ok(names) = CString::new(names.trim_ascii_end()) else {
        return false;
    };
    // SAFETY: `command` comes from `find` in this same load; the names end in NUL, live through the
    // call, and are only read.
    unsafe { api!(RedisModule_SetCommandACLCategories, command, names.as_ptr()) == OK }
}

/// Strides by which the server walks our arrays, whatever the size of its own structs.
static VERSION: raw::RedisModuleCommandInfoVersion = raw::RedisModuleCommandInfoVersion {
    version: 1,
    sizeof_historyentry: size_of::<raw::RedisModuleCommandHistoryEntry>(),
    sizeof_keyspec: size_of::<raw::RedisModuleCommandKeySpec>(),
    sizeof_arg: size_of::<raw::RedisModuleCommandArg>(),
};

/// True also if the server lacks the API.
fn set_info(command: *mut raw::RedisModuleCommand, about: &About) -> bool {
    // SAFETY: as in `find`.
    if unsafe { raw::RedisModule_SetCommandInfo }.is_none() {
        return true;
    }
    let mut key_specs = [first_argument(about.key), END_OF_KEY_SPECS];
    let mut args = RawArgs::of(about.args);
    let info = raw::RedisModuleCommandInfo {
        version: &raw const VERSION,
        summary: about.summary.as_ptr(),
        complexity: about.complexity.as_ptr(),
        since: SINCE.as_ptr(),
        history: null_mut(),
        tips: non_empty(about.tips),
        arity: about.arity,
        key_specs: key_specs.as_mut_ptr(),
        args: args.list.as_mut_ptr(),
    };
    // SAFETY: `command` comes from `find`. All that `info` points to lives through the call, in which
    // the server copies what it keeps and writes nothing: static strings that end in NUL, key
    // specifications that end with a zeroed one, arguments that end with a nameless one, at every
    // depth (`RawArgs`).
    unsafe { api!(RedisModule_SetCommandInfo, command, &info) == OK }
}

fn non_empty(text: &'static CStr) -> *const c_char {
    if text.is_empty() {
        null()
    } else {
        text.as_ptr()
    }
}

/// A specification that begins nowhere ends the array.
const END_OF_KEY_SPECS: raw::RedisModuleCommandKeySpec = one_key_at(
    0,
    raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INVALID,
);

fn first_argument(access: Option<Access>) -> raw::RedisModuleCommandKeySpec {
    let Some(access) = access else {
        return END_OF_KEY_SPECS;
    };
    raw::RedisModuleCommandKeySpec {
        flags: access.flags().into(),
        ..one_key_at(
            1,
            raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX,
        )
    }
}

const fn one_key_at(
    pos: c_int,
    begin_search_type: raw::RedisModuleKeySpecBeginSearchType,
) -> raw::RedisModuleCommandKeySpec {
    raw::RedisModuleCommandKeySpec {
        notes: null(),
        flags: 0,
        begin_search_type,
        bs: raw::RedisModuleCommandKeySpec__bindgen_ty_1 {
            index: raw::RedisModuleCommandKeySpec__bindgen_ty_1__bindgen_ty_1 { pos },
        },
        find_keys_type: raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE,
        fk: raw::RedisModuleCommandKeySpec__bindgen_ty_2 {
            range: raw::RedisModuleCommandKeySpec__bindgen_ty_2__bindgen_ty_1 {
                lastkey: 0,
                keystep: 1,
                limit: 0,
            },
        },
    }
}

/// The server's form of an argument list: a nameless entry ends it, and entries point into the
/// lists nested in them. Those are on the heap, so that this struct may move.
struct RawArgs {
    list: Vec<raw::RedisModuleCommandArg>,
    _nested: Vec<RawArgs>,
}

impl RawArgs {
    fn of(args: &[Arg]) -> Self {
        let mut nested = Vec::new();
        let mut list: Vec<_> = args.iter().map(|arg| raw_arg(arg, &mut nested)).collect();
        list.push(NO_ARG);
        RawArgs {
            list,
            _nested: nested,
        }
    }
}

const NO_ARG: raw::RedisModuleCommandArg = raw::RedisModuleCommandArg {
    name: null(),
    type_: raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING,
    key_spec_index: -1,
    token: null(),
    summary: null(),
    since: null(),
    flags: 0,
    deprecated_since: null(),
    subargs: null_mut(),
    display_text: null(),
};

fn raw_arg(arg: &Arg, nested: &mut Vec<RawArgs>) -> raw::RedisModuleCommandArg {
    let subargs = match arg.kind {
        Kind::OneOf(args) | Kind::Block(args) => {
            let mut subargs = RawArgs::of(args);
            let list = subargs.list.as_mut_ptr();
            nested.push(subargs);
            list
        }
        _ => null_mut(),
    };
    raw::RedisModuleCommandArg {
        name: arg.name.as_ptr(),
        type_: raw_type(arg.kind),
        key_spec_index: if matches!(arg.kind, Kind::Key) { 0 } else { -1 },
        token: arg.token.map_or(null(), CStr::as_ptr),
        flags: arg.flags as c_int,
        subargs,
        display_text: arg.shown.map_or(null(), CStr::as_ptr),
        ..NO_ARG
    }
}

fn raw_type(kind: Kind) -> raw::RedisModuleCommandArgType {
    match kind {
        Kind::Key => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY,
        Kind::String => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING,
        Kind::Integer => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER,
        Kind::Double => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_DOUBLE,
        Kind::Pattern => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PATTERN,
        Kind::UnixTime => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_UNIX_TIME,
        Kind::Word => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN,
        Kind::OneOf(_) => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_ONEOF,
        Kind::Block(_) => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_BLOCK,
    }
}
