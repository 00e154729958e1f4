//! A server and modules that the program carries behind itself, and where they are unpacked.
//!
//! ```text
//! program | files, one after another, as gzip | manifest | footer
//! ```
//!
//! A line of the manifest is `SHA-256 size name`; the footer says how long the two before it are. Files are unpacked once,
//! into a folder of the user's cache that is named after the manifest's hash, and checked by their own at each start: what
//! is in a cache may have been cut short, or changed.

use std::env;
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use rustix::fs::{statvfs, StatVfsMountFlags};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

const FOOTER: usize = 52;
const MARK: &str = "dq-packed:";
const DAMAGED: &str = "this program is damaged: get it again";
const MOST_MANIFEST: u64 = 1 << 16;

/// What a program carries.
pub struct Packed {
    program: File,
    /// Where the archive begins.
    archive: u64,
    /// Of the manifest.
    hash: String,
    entries: Vec<Entry>,
}

struct Entry {
    hash: String,
    size: u64,
    name: String,
}

impl Entry {
    fn of(line: &str) -> Option<Entry> {
        let words: Vec<&str> = line.split(' ').collect();
        let &[hash, size, name] = &words[..] else {
            return None;
        };
        let is_plain = |it: char| it.is_ascii_alphanumeric() || "-.".contains(it);
        let is_name = !name.starts_with('.') && name.chars().all(is_plain);
        is_name.then_some(Entry {
            hash: hash.to_owned(),
            size: size.parse().ok()?,
            name: name.to_owned(),
        })
    }
}

impl Packed {
    /// None where it carries nothing.
    pub fn of(program: &Path) -> Result<Option<Packed>, String> {
        let shown = |error: io::Error| format!("{}: {error}", program.display());
        let mut file = File::open(program).map_err(shown)?;
        let length = file.metadata().map_err(shown)?.len();
        let Some(behind) = length.checked_sub(FOOTER as u64) else {
            return Ok(None);
        };
        let mut footer = [0; FOOTER];
        file.seek(SeekFrom::Start(behind)).map_err(shown)?;
        file.read_exact(&mut footer).map_err(shown)?;
        let Some((archive, manifest)) = lengths(&footer) else {
            return Ok(None);
        };
        let damaged = || DAMAGED.to_owned();
        let from = behind.checked_sub(manifest).ok_or_else(damaged)?;
        let archive = from.checked_sub(archive).ok_or_else(damaged)?;
        let mut text = String::new();
        file.seek(SeekFrom::Start(from)).map_err(shown)?;
        let read = (&file)
            .take(manifest.min(MOST_MANIFEST))
            .read_to_string(&mut text);
        read.map_err(|_| damaged())?;
        Ok(Some(Packed {
            program: file,
            archive,
            hash: hex(&Sha256::digest(&text)),
            entries: text
                .lines()
                .map(Entry::of)
                .collect::<Option<_>>()
                .ok_or_else(damaged)?,
        }))
    }

    /// The folder with its files, in the first place where programs may be kept.
    pub fn unpacked(&self) -> Result<PathBuf, String> {
        self.unpacked_in(&places())
    }

    fn unpacked_in(&self, places: &[PathBuf]) -> Result<PathBuf, String> {
        let mut against = Vec::new();
        for place in places {
            match self.unpacked_at(place) {
                Ok(folder) => return Ok(folder),
                Err(why) if why == DAMAGED => return Err(why),
                Err(why) => against.push(format!("{}: {why}", place.display())),
            }
        }
        Err(format!(
            "the server that is packed in this program cannot be unpacked ({}): name another folder, \
             XDG_CACHE_HOME=FOLDER, or a server, --server PROGRAM --module FILE",
            against.join("; ")
        ))
    }

    fn unpacked_at(&self, place: &Path) -> Result<PathBuf, String> {
        private(place)?;
        let folder = place.join(&self.hash[..16]);
        if self.is_in(&folder) {
            return Ok(folder);
        }
        let made = scratch(place)?;
        self.unpack(made.path())?;
        // What another start has put there meanwhile is as good; what is damaged makes room.
        if fs::rename(made.path(), &folder).is_err() && !self.is_in(&folder) {
            let aside = scratch(place)?;
            let _ = fs::rename(&folder, aside.path().join("old"));
            let _ = fs::rename(made.path(), &folder);
        }
        match self.is_in(&folder) {
            true => Ok(folder),
            false => Err("what is there is not what was put there".to_owned()),
        }
    }

    /// Whether each file is there, byte for byte.
    fn is_in(&self, folder: &Path) -> bool {
        self.entries.iter().all(|entry| {
            let file = File::open(folder.join(&entry.name));
            let mut sum = Sum::default();
            let copied = file.and_then(|file| io::copy(&mut file.take(entry.size + 1), &mut sum));
            copied.is_ok_and(|size| size == entry.size) && sum.hex() == entry.hash
        })
    }

    fn unpack(&self, folder: &Path) -> Result<(), String> {
        let mut archive = &self.program;
        let sought = archive.seek(SeekFrom::Start(self.archive));
        sought.map_err(|error| error.to_string())?;
        let mut files = GzDecoder::new(archive);
        for entry in &self.entries {
            let mut options = OpenOptions::new();
            let made = options.write(true).create_new(true).mode(0o700);
            let written = made.open(folder.join(&entry.name)).and_then(|mut file| {
                io::copy(&mut (&mut files).take(entry.size), &mut file)?;
                file.flush()
            });
            written.map_err(|error| match error.kind() {
                ErrorKind::InvalidInput | ErrorKind::InvalidData | ErrorKind::UnexpectedEof => {
                    DAMAGED.to_owned()
                }
                _ => error.to_string(),
            })?;
        }
        match self.is_in(folder) {
            true => Ok(()),
            false => Err(DAMAGED.to_owned()),
        }
    }
}

fn lengths(footer: &[u8]) -> Option<(u64, u64)> {
    let text = std::str::from_utf8(footer).ok()?;
    let (archive, manifest) = text
        .strip_prefix(MARK)?
        .strip_suffix('\n')?
        .split_once(':')?;
    Some((archive.parse().ok()?, manifest.parse().ok()?))
}

/// Where it may be unpacked: a folder of the user's cache, or one of all users' temporary files.
fn places() -> Vec<PathBuf> {
    let of = |name: &str| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|it| it.is_absolute())
    };
    let cache = of("XDG_CACHE_HOME").or_else(|| Some(of("HOME")?.join(".cache")));
    let user = rustix::process::geteuid().as_raw();
    let temporary = [env::temp_dir(), "/var/tmp".into()].map(|it| it.join(format!("dq-{user}")));
    cache
        .map(|it| it.join("dq"))
        .into_iter()
        .chain(temporary)
        .collect()
}

fn scratch(place: &Path) -> Result<TempDir, String> {
    let mut options = tempfile::Builder::new();
    let made = options
        .prefix(".dq-")
        .permissions(Permissions::from_mode(0o700));
    made.tempdir_in(place).map_err(|error| error.to_string())
}

/// A folder that is this user's alone, and from which programs may be run.
fn private(place: &Path) -> Result<(), String> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(place);
    made.map_err(|error| error.to_string())?;
    let found = fs::symlink_metadata(place).map_err(|error| error.to_string())?;
    if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
        return Err("it belongs to another user".to_owned());
    }
    if found.mode() & 0o022 != 0 {
        return Err("others may write there".to_owned());
    }
    match statvfs(place) {
        Ok(found) if found.f_flag.contains(StatVfsMountFlags::NOEXEC) => {
            Err("no program may be run there (noexec)".to_owned())
        }
        _ => Ok(()),
    }
}

#[derive(Default)]
struct Sum(Sha256);

impl Sum {
    fn hex(self) -> String {
        hex(&self.0.finalize())
    }
}

impl Write for Sum {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
