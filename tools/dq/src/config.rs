//! One file for all commands: `--config FILE`, or DQ_CONFIG. `options` of it, and of the command's section, stand before
//! those of the command line, which count more.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::Path;

use clap::{Arg, Command};
use dq_connect::config;
use toml::{Spanned, Value};

const OPTIONS: &str = "options";

/// What connects to a server has --config; the board and dq http, which find more in the file, have it as their own.
pub fn with_option(command: Command) -> Command {
    let has = |name| command.get_arguments().any(|it| it.get_id() == name);
    match has("url") && !has("config") {
        true => command.arg(
            Arg::new("config")
                .long("config")
                .value_name("FILE")
                .global(true)
                .help("Options of all commands [default: that of DQ_CONFIG]"),
        ),
        false => command,
    }
}

/// The command line as it is meant: the program, the command, options of the file, and the others.
pub fn expand(mut words: Vec<OsString>, commands: &Command) -> Result<Vec<OsString>, String> {
    // What else is wrong with it is said when all of it is parsed.
    let lenient = commands.clone().ignore_errors(true);
    let parsed = lenient.try_get_matches_from(&words);
    let Some((command, matches)) = parsed.as_ref().ok().and_then(|it| it.subcommand()) else {
        return Ok(words);
    };
    let Ok(said) = matches.try_get_raw("config") else {
        return Ok(words);
    };
    let said = said.and_then(|mut values| values.next_back());
    let of_environment = env::var_os("DQ_CONFIG").filter(|path| !path.is_empty());
    let is_said = said.is_some();
    let Some(path) = said.map(OsString::from).or(of_environment) else {
        return Ok(words);
    };
    let options = config::read(Path::new(&path), |text| options(text, command, commands));
    let options = options.map_err(|error| format!("{command}: {error}"))?;
    let mut added: Vec<OsString> = options.into_iter().map(OsString::from).collect();
    if !is_said {
        added.extend(["--config".into(), path]);
    }
    words.splice(2..2, added);
    Ok(words)
}

fn options(text: &str, command: &str, commands: &Command) -> Result<Vec<String>, String> {
    let file: BTreeMap<Spanned<String>, Value> = config::parse(text)?;
    let (mut all, mut own) = (Vec::new(), Vec::new());
    let mut has_servers = false;
    for (key, value) in &file {
        let wrong = |why: &str| config::wrong(text, key.span().start, why);
        match (key.get_ref().as_str(), value) {
            (OPTIONS, value) => all = list(value).map_err(wrong)?,
            (name, Value::Table(section)) if commands.find_subcommand(name).is_some() => {
                let options = section.get(OPTIONS).map_or(Ok(Vec::new()), list);
                let options = options.map_err(wrong)?;
                if name == command {
                    own = options;
                    has_servers = section.contains_key("server");
                }
            }
            _ => {
                return Err(wrong(
                    "neither `options` nor a section with a command's name",
                ))
            }
        }
    }
    // The board's [[board.server]] each have their own.
    if has_servers {
        all.clear();
    }
    all.extend(own);
    Ok(all)
}

fn list(value: &Value) -> Result<Vec<String>, &'static str> {
    let word = |it: &Value| it.as_str().map(str::to_owned);
    let words = value
        .as_array()
        .and_then(|all| all.iter().map(word).collect());
    words.ok_or("`options` is a list of words, as on the command line")
}
