//! The licences of all crates in the program and in the module that it carries, for `dq licenses`: their texts as the
//! crates have them, each text once.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn main() {
    let (tools, module) = (Path::new(".."), Path::new("../.."));
    let mut crates = BTreeMap::new();
    for (folder, root) in [(tools, "dq"), (module, "redis-dq")] {
        println!(
            "cargo::rerun-if-changed={}",
            folder.join("Cargo.lock").display()
        );
        collect(folder, root, &mut crates);
    }
    let out = Path::new(&env::var_os("OUT_DIR").unwrap()).join("licenses.txt");
    fs::write(out, said(&crates)).unwrap();
}

/// "name version" of those that are linked into `root`, with their licence and its texts.
fn collect(folder: &Path, root: &str, crates: &mut BTreeMap<String, (String, Vec<String>)>) {
    let cargo = env::var_os("CARGO").unwrap();
    let mut command = Command::new(cargo);
    command.args([
        "metadata",
        "--format-version",
        "1",
        "--locked",
        "--filter-platform",
    ]);
    command
        .arg(env::var_os("TARGET").unwrap())
        .arg("--manifest-path")
        .arg(folder.join("Cargo.toml"));
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: BTreeMap<String, Value> = list(&found["packages"])
        .into_iter()
        .map(|it| (text(&it["id"]), it))
        .collect();
    let nodes: BTreeMap<String, Value> = list(&found["resolve"]["nodes"])
        .into_iter()
        .map(|it| (text(&it["id"]), it))
        .collect();
    let is_root = |it: &&Value| it["name"] == root && it["source"].is_null();
    let mut next = vec![text(&packages.values().find(is_root).unwrap()["id"])];
    let mut seen = BTreeSet::new();
    while let Some(id) = next.pop() {
        if !seen.insert(id.clone()) {
            continue;
        }
        for dependency in list(&nodes[&id]["deps"]) {
            let is_linked = |kind: &Value| kind["kind"].is_null();
            if list(&dependency["dep_kinds"]).iter().any(is_linked) {
                next.push(text(&dependency["pkg"]));
            }
        }
        let package = &packages[&id];
        if !package["source"].is_null() {
            let name = format!("{} {}", text(&package["name"]), text(&package["version"]));
            let folder = text(&package["manifest_path"]);
            crates.insert(
                name,
                (
                    text(&package["license"]),
                    texts(Path::new(&folder).parent().unwrap()),
                ),
            );
        }
    }
}

/// Of the files in which a crate says it.
fn texts(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let is_said = |name: &str| {
        ["LICEN", "COPYING", "NOTICE", "UNLICENSE"]
            .iter()
            .any(|it| name.starts_with(it))
    };
    let mut files: Vec<_> = files
        .filter(|it| {
            it.is_file() && is_said(&it.file_name().unwrap().to_string_lossy().to_uppercase())
        })
        .collect();
    files.sort();
    let read = |path| {
        String::from_utf8_lossy(&fs::read(path).unwrap())
            .trim()
            .replace('\r', "")
    };
    files.iter().map(read).collect()
}

fn said(crates: &BTreeMap<String, (String, Vec<String>)>) -> String {
    let mut of_text: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut list = String::new();
    for (name, (license, texts)) in crates {
        list += &format!("{name:32} {license}\n");
        for text in texts {
            of_text.entry(text).or_default().push(name);
        }
    }
    let texts = of_text
        .iter()
        .map(|(text, names)| format!("--- {}\n\n{text}\n", names.join(", ")));
    format!("{list}\n{}", texts.collect::<Vec<_>>().join("\n"))
}
