//! The module's load: more than once when the server starts, and never once it has started.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::probe::show;
use crate::scene::{Lines, Scene};
use crate::support::{locate, Raw, Server};

fn module() -> String {
    locate::module_path().display().to_string()
}

fn copy_to(from: &str, to: &Path) {
    fs::copy(from, to).expect("room for a copy");
}

/// The lines of the configuration file that load modules.
fn lines_of(server: &Server) -> Vec<String> {
    let text = fs::read_to_string(server.folder().join("server.conf")).unwrap();
    let lines = text.lines().filter(|line| line.starts_with("loadmodule "));
    lines.map(str::to_owned).collect()
}

#[track_caller]
fn has_one_dq(server: &Server) -> Raw {
    let mut client = server.raw();
    let modules = client.ask("MODULE LIST");
    assert_eq!(modules.matches("'name' 'dq' ").count(), 1, "{modules}");
    assert_eq!(modules.matches("libdq.so'").count(), 1, "{modules}");
    client
}

/// A file beside the configuration, for what the server is to find there before its first start.
fn folder_with(name: &str, make: impl Fn(&Path)) -> std::path::PathBuf {
    let folder = crate::support::place::new_folder();
    make(&folder.join(name));
    folder
}

/// Twenty rounds of a start and a CONFIG REWRITE, as Sentinel sends it at each failover.
#[test]
fn again_at_the_start() {
    let module = module();
    let library = |make: fn(&str, &Path)| folder_with("libdq.so", |to| make(&self::module(), to));
    let link = library(|from, to| std::os::unix::fs::symlink(from, to).unwrap());
    let copy = library(copy_to);
    let included = folder_with("more.conf", |file| {
        fs::write(file, format!("loadmodule {module}\n")).unwrap();
    });
    let named = |folder: &Path| format!("--loadmodule {}/libdq.so", folder.display());
    let builder = || Server::builder().module_arguments("timer-steps 700").aof();
    for (kind, rounds, builder) in [
        (
            "command line",
            20,
            builder().words(&format!("--loadmodule {module}")),
        ),
        ("same file", 3, builder().config("loadmodule", &module)),
        (
            "included",
            3,
            builder().config("include", included.join("more.conf").display()),
        ),
        ("symlink", 3, builder().words(&named(&link))),
        ("copy", 3, builder().words(&named(&copy))),
        (
            "alone, and twice",
            3,
            Server::plain()
                .aof()
                .words(&format!("{0} {0}", named(&copy))),
        ),
    ] {
        let mut server = builder.start();
        for round in 1..=rounds {
            let mut client = has_one_dq(&server);
            client.says(
                &format!("DQ.ADD q {round} x DELAY 1"),
                &format!("'{round}'"),
            );
            client.begin("DQ.BPOP q 0 NOACK");
            assert_eq!(client.delivery().id, round.to_string());
            client.says(&format!("DQ.ADD kept {round} x"), &format!("'{round}'"));
            assert_eq!(client.int("DQ.LEN kept"), round);
            client.says("CONFIG REWRITE", "+OK");
            assert_eq!(lines_of(&server).len(), 1, "{kind}");
            let log = server.log();
            assert!(log.contains("dq is loaded already"), "{kind}: {log}");
            server.restart();
        }
        server.assert_no_crash();
    }
}

#[test]
fn the_first_arguments_count() {
    let more = "timer-steps 700 default-backoff 4 5 default-ttr 4000 test-clock no";
    let copy = folder_with("libdq.so", |to| copy_to(&module(), to));
    for path in [module(), copy.join("libdq.so").display().to_string()] {
        let mut server = Server::builder()
            .module_arguments("timer-steps 600 default-backoff 7 8 test-clock no")
            .words(&format!("--loadmodule {path} {more}"))
            .start();
        let warning = "Ignored here: timer-steps 700, default-backoff 4 5, default-ttr 4000\n";
        for _ in 0..3 {
            let mut client = has_one_dq(&server);
            assert!(server.log().contains(warning), "{}", server.log());
            let settings = "[ 'dq.timer-steps' '600' ]";
            client.says("CONFIG GET dq.timer-steps", settings);
            client.says("CONFIG GET dq.default-ttr", "[ 'dq.default-ttr' '60000' ]");
            assert_eq!(ladder(&mut client), "7 8");
            client.says("CONFIG REWRITE", "+OK");
            server.restart();
        }
    }
}

/// Every argument and setting is the same after a CONFIG REWRITE, however it was given.
#[test]
fn arguments_survive_config_rewrite() {
    let settings = |client: &mut Raw| {
        let of = |name| client.ask(&format!("CONFIG GET dq.{name}"));
        ["timer-steps", "default-ttr", "default-backoff"].map(of)
    };
    let arguments =
        "default-ttr 5000 test-clock yes default-backoff \"10 20\" 30,40 timer-steps 700";
    let mut server = Server::builder().module_arguments(arguments).start();
    let changes = [
        "",
        "timer-steps 900",
        "timer-steps 1000",
        "timer-steps 700",
        "default-ttr 60000",
        "default-backoff 7",
        "default-backoff 5,\\x206\\x20\\x207",
        "default-backoff 0",
        "default-backoff 10\\x2020\\x2030\\x2040",
    ];
    for change in changes {
        let mut client = has_one_dq(&server);
        if !change.is_empty() {
            client.says(&format!("CONFIG SET dq.{change}"), "+OK");
        }
        let before = settings(&mut client);
        client.says("CONFIG REWRITE", "+OK");
        server.restart();
        assert_eq!(settings(&mut server.raw()), before, "{change}");
        assert_eq!(server.number("dq", "dq_test_clock"), 1);
    }
    let mut server = Server::plain().start();
    let loadex =
        "MODULE LOADEX PATH CONFIG dq.timer-steps 800 ARGS default-backoff 3 4 default-ttr 4000 test-clock yes";
    let loadex = loadex.replace("PATH", &module());
    server.raw().says(&loadex, "+OK");
    let before = settings(&mut server.raw());
    server.raw().says("CONFIG REWRITE", "+OK");
    server.restart();
    assert_eq!(settings(&mut server.raw()), before);
    assert_eq!(server.number("dq", "dq_test_clock"), 1);
}

const DOUBLING: &str =
    "1000 2000 4000 8000 16000 32000 64000 128000 256000 512000 1024000 2048000 3600000";
const LONGEST: &str = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 4398046511103";

fn set_ladder(client: &mut Raw, value: &[u8]) -> String {
    show(&client.call(&[b"CONFIG", b"SET", b"dq.default-backoff", value]))
}

fn ladder(client: &mut Raw) -> String {
    let setting = client.ask("CONFIG GET dq.default-backoff");
    let text = setting.strip_prefix("[ 'dq.default-backoff' '").unwrap();
    text.trim_end_matches("' ]").replace("\\x20", " ")
}

fn with_arguments(arguments: &str) -> Result<Server, String> {
    Server::builder().module_arguments(arguments).try_start()
}

#[test]
fn a_ladder_in_all_its_forms() {
    let server = Server::plain().config("loadmodule", module()).start();
    let mut client = server.raw();
    assert_eq!(ladder(&mut client), DOUBLING);
    for (value, shown) in [
        ("5", "5"),
        ("5 6 7", "5 6 7"),
        ("5,6,7", "5 6 7"),
        (" 5, 6 ,7  8, ", "5 6 7 8"),
        (LONGEST, LONGEST),
        ("0", "0"),
    ] {
        assert_eq!(set_ladder(&mut client, value.as_bytes()), "+OK");
        assert_eq!(ladder(&mut client), shown);
        // Quoted, and as CONFIG REWRITE writes it.
        for given in [format!("\"{value}\""), value.to_owned()] {
            let arguments = format!("test-clock no default-backoff {given} default-ttr 5000");
            let server = with_arguments(&arguments).unwrap();
            assert_eq!(ladder(&mut server.raw()), shown);
            let mut client = server.raw();
            client.says("CONFIG GET dq.default-ttr", "[ 'dq.default-ttr' '5000' ]");
        }
    }
}

#[test]
fn what_is_no_ladder_is_refused() {
    let server = Server::start();
    let mut client = server.raw();
    let (longer, huge) = (format!("{LONGEST} 17"), "9".repeat(9000));
    let hostile: [&[u8]; 24] = [
        b"",
        b" ",
        b",",
        b"x",
        b"5 x",
        b"x 5",
        b"-5",
        b"+5",
        b"5.5",
        b"5e3",
        b"0 5",
        b"5 0",
        b"0 0",
        b"0x5",
        b"5;6",
        b"5\n6",
        b"5\x006",
        b"5\t6",
        b"\xff",
        "\u{665}".as_bytes(),
        b"4398046511104",
        b"18446744073709551616",
        longer.as_bytes(),
        huge.as_bytes(),
    ];
    for value in hostile {
        let shown = value.escape_ascii().to_string();
        let refused = set_ladder(&mut client, value);
        assert!(refused.contains("1 to 16 delays"), "{shown}: {refused}");
        assert_eq!(ladder(&mut client), "0");
        let log = with_arguments(&format!("default-backoff \"{shown}\""));
        let log = log.err().unwrap_or_else(|| panic!("started with {shown}"));
        assert!(log.contains("[default-backoff ms ..."), "{shown}: {log}");
    }
    for arguments in [
        "default-backoff",
        "default-backoff default-ttr 5",
        "default-backoff 5 x",
    ] {
        let log = with_arguments(arguments).err().expect(arguments);
        assert!(log.contains("arguments are: "), "{log}");
    }
    server.assert_no_crash();
}

#[test]
fn refused_once_the_server_has_started() {
    let copy = folder_with("libdq.so", |to| copy_to(&module(), to));
    let copy = copy.join("libdq.so").display().to_string();
    // A server that has just loaded it by a command, in the same turn of its event loop, too.
    let server = Server::plain().start();
    let mut client = server.raw();
    let first = format!("MODULE LOAD {}", module());
    let again = [module(), copy].map(|path| {
        [
            format!("MODULE LOAD {path}"),
            format!("MODULE LOAD {path} timer-steps 500"),
            format!("MODULE LOADEX {path}"),
            format!("MODULE LOADEX {path} CONFIG dq.timer-steps 500"),
        ]
    });
    let again = again.concat();
    let all = [vec![first], again.clone()].concat();
    client.send(
        &all.iter()
            .flat_map(|line| crate::probe::packed(line))
            .collect::<Vec<_>>(),
    );
    assert_eq!(client.reply(), "+OK");
    for line in all[1..].iter().map(|_| None).chain(again.iter().map(Some)) {
        line.iter().for_each(|line| client.begin(line));
        let refused = client.reply();
        assert!(
            refused.starts_with("-ERR Error loading the extension"),
            "{line:?}: {refused}"
        );
    }
    let said = server
        .log()
        .matches("dq is loaded already, as it can be only once")
        .count();
    assert!(
        said >= again.len(),
        "{said} of {}: {}",
        again.len(),
        server.log()
    );
    has_one_dq(&server).says("DQ.ADD q a x", "'a'");
    client.says("CONFIG GET dq.timer-steps", "[ 'dq.timer-steps' '1000' ]");
    server.assert_no_crash();
}

/// Another module that is called dq.
const FOREIGN: &str = "
int RedisModule_OnLoad(void *ctx, void **argv, int argc) {
    int (*api)(const char *, void *) = *(int (**)(const char *, void *))ctx;
    void (*name)(void *, const char *, int, int);
    api(\"RedisModule_SetModuleAttribs\", &name);
    name(ctx, \"dq\", 1, 1);
    return 0;
}";

#[test]
fn a_foreign_module_of_this_name_is_refused() {
    let folder = folder_with("foreign.c", |file| fs::write(file, FOREIGN).unwrap());
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-o", "foreign.so", "foreign.c"])
        .current_dir(&folder)
        .status();
    assert!(compiled.expect("a C compiler").success());
    let foreign = folder.join("foreign.so").display().to_string();
    let log = Server::plain()
        .config("loadmodule", &foreign)
        .words(&format!("--loadmodule {}", module()))
        .try_start();
    let log = log.err().expect("the server does not start");
    assert!(log.contains("another module with the name dq"), "{log}");
    let server = Server::plain().config("loadmodule", &foreign).start();
    let refused = server.raw().ask(&format!("MODULE LOAD {}", module()));
    assert!(refused.starts_with("-ERR Error loading"), "{refused}");
}

/// All servers here are older than the patched versions.
#[test]
fn warns_of_evicted_clients() {
    const WARNING: &str = "maxmemory-clients is not 0";
    let count = |server: &Server| server.log().matches(WARNING).count();
    for (value, warnings) in [("0", 0), ("0%", 0), ("5%", 1), ("100mb", 1)] {
        let builder = Server::builder();
        let server = match value {
            "0" => builder,
            value => builder.config("maxmemory-clients", value),
        };
        let server = server.start();
        assert_eq!(count(&server), warnings, "{value}");
    }
    let server = Server::start();
    let mut client = server.raw();
    for (line, warnings) in [
        ("hz 20", 0),
        ("maxmemory-clients 5%", 1),
        ("hz 20", 1),
        ("hz 10 maxmemory-clients 200mb", 2),
        ("maxmemory-clients 0", 2),
        ("maxmemory 1gb", 2),
    ] {
        client.says(&format!("CONFIG SET {line}"), "+OK");
        assert_eq!(count(&server), warnings, "{line}");
    }
}
