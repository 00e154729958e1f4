//! Which files an AOF is made of.

use std::fs;
use std::path::{Path, PathBuf};

/// The files, in the order in which a server loads them.
#[derive(Debug, PartialEq, Eq)]
pub struct Parts {
    pub files: Vec<PathBuf>,
    /// The files do not begin where the data does.
    pub is_partial: bool,
}

/// The files of a manifest, a folder with one, the name of the AOF in the server's settings, or one file.
pub fn of(path: &Path) -> Result<Parts, String> {
    if let Some(manifest) = manifest_of(path)? {
        let text = fs::read_to_string(&manifest)
            .map_err(|error| format!("{}: {error}", manifest.display()))?;
        let folder = manifest.parent().unwrap_or(Path::new("."));
        return Ok(Parts {
            files: files_of(&text)?
                .iter()
                .map(|name| folder.join(name))
                .collect(),
            is_partial: false,
        });
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(Parts {
        files: vec![path.to_path_buf()],
        is_partial: name.contains(".incr."),
    })
}

fn manifest_of(path: &Path) -> Result<Option<PathBuf>, String> {
    let is_manifest = |path: &Path| path.extension().is_some_and(|it| it == "manifest");
    if is_manifest(path) {
        return Ok(Some(path.to_path_buf()));
    }
    if path.is_dir() {
        let entries = fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let all: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| is_manifest(path))
            .collect();
        let mut found: Vec<_> = all.iter().filter(|it| !is_draft(it, &all)).collect();
        return match found.len() {
            1 => Ok(found.pop().cloned()),
            0 => Err(format!("{} has no manifest", path.display())),
            _ => Err(format!(
                "{} has several manifests: name one",
                path.display()
            )),
        };
    }
    // The server's `appendfilename`, whose files are in `appenddirname`.
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".manifest");
    let beside = path.with_file_name("appendonlydir").join(name);
    Ok((!path.exists() && beside.is_file()).then_some(beside))
}

/// A server writes its next manifest as `temp-NAME` and then renames it; one that is killed in between
/// leaves it behind, and no server reads it.
fn is_draft(path: &Path, manifests: &[PathBuf]) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let finished = name.strip_prefix("temp-");
    finished.is_some_and(|name| manifests.contains(&path.with_file_name(name)))
}

/// `file NAME seq N type b|h|i`, line by line.
fn files_of(manifest: &str) -> Result<Vec<String>, String> {
    let (mut base, mut increments) = (Vec::new(), Vec::new());
    for line in manifest
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
    {
        let words = words_of(line);
        let after = |what: &str| {
            let at = words.iter().step_by(2).position(|word| word == what)?;
            words.get(2 * at + 1)
        };
        match (after("file"), after("type").map(String::as_str)) {
            (Some(name), Some("b")) => base.push(name.clone()),
            (Some(name), Some("i")) => increments.push(name.clone()),
            (Some(_), Some("h")) => {}
            _ if words.is_empty() => {}
            _ => return Err(format!("not a manifest line: {line}")),
        }
    }
    base.extend(increments);
    Ok(base)
}

/// Splits a line into words; a word may be quoted.
fn words_of(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let (word, behind) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        words.push(word.to_owned());
        rest = behind.trim_start();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_names_base_and_increments() {
        let manifest = "file a.aof.2.base.rdb seq 2 type b\n\
            file a.aof.1.incr.aof seq 1 type h\n\
            file \"a b.3.incr.aof\" seq 3 type i startoffset 5\n\
            file a.aof.4.incr.aof seq 4 type i\n";
        let files = files_of(manifest).unwrap();
        assert_eq!(
            files,
            ["a.aof.2.base.rdb", "a b.3.incr.aof", "a.aof.4.incr.aof"]
        );
        assert!(files_of("what is this\n").is_err());
    }

    #[test]
    fn what_a_killed_server_had_not_renamed_is_passed_over() {
        let folder = std::env::temp_dir().join(format!("dq-audit-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for name in ["temp-a.aof.manifest", "a.aof.manifest"] {
            fs::write(folder.join(name), "").unwrap();
        }
        let found = manifest_of(&folder);
        fs::write(folder.join("b.aof.manifest"), "").unwrap();
        let of_two = manifest_of(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, Ok(Some(folder.join("a.aof.manifest"))));
        assert!(of_two.unwrap_err().contains("several manifests"));
    }

    #[test]
    fn increments_alone_tell_a_part() {
        assert!(of(Path::new("x.aof.7.incr.aof")).unwrap().is_partial);
        assert!(!of(Path::new("appendonly.aof")).unwrap().is_partial);
    }
}
