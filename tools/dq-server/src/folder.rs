//! The folder of the data: one server's at a time, as two would deliver jobs twice and overwrite each other's files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{flock, FlockOperation};
use tempfile::TempDir;

pub struct Folder {
    pub path: PathBuf,
    /// The server inherits it, so the folder is taken until that ends, however this program does.
    pub lock: File,
    /// Removed at the end.
    _temporary: Option<TempDir>,
}

impl Folder {
    pub fn take(path: &Path) -> Result<Folder, String> {
        let shown = path.display();
        let not = |error| refused(path, &error);
        fs::create_dir_all(path).map_err(not)?;
        let file = path.join("dq.lock");
        let mut options = OpenOptions::new();
        let lock = options.read(true).append(true).create(true).open(&file);
        let mut lock = lock.map_err(not)?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut holder = String::new();
            // Who it was is a courtesy.
            let _ = lock.read_to_string(&mut holder);
            return Err(format!(
                "{shown} belongs to a server that is running (process {}); another folder: --dir FOLDER",
                holder.trim()
            ));
        }
        let path = path.canonicalize().map_err(not)?;
        Ok(Folder {
            path,
            lock,
            _temporary: None,
        })
    }

    pub fn temporary() -> Result<Folder, String> {
        let made = tempfile::Builder::new().prefix("dq-").tempdir();
        let made = made.map_err(|error| format!("no temporary folder: {error}"))?;
        let folder = Folder::take(made.path())?;
        Ok(Folder {
            _temporary: Some(made),
            ..folder
        })
    }

    /// Notes the server's process, for who finds the folder taken.
    pub fn name(&mut self, server: u32) {
        let noted = self.lock.set_len(0);
        let _ = noted.and_then(|()| writeln!(self.lock, "{server}"));
    }
}

/// Where nothing can be kept.
pub fn refused(path: &Path, error: &io::Error) -> String {
    let shown = path.display();
    format!("{shown}: {error}; another folder: --dir FOLDER")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use std::time::{Duration, Instant};

    #[test]
    fn a_folder_is_taken_once() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("new/data");
        let mut folder = Folder::take(&path).unwrap();
        folder.name(17);
        let error = Folder::take(&path).err().unwrap();
        assert!(
            error.contains("belongs to a server that is running (process 17)"),
            "{error}"
        );
        drop(folder);
        // A program that another test starts has the lock, too, until it is executed.
        let until = Instant::now() + Duration::from_secs(60);
        while let Err(error) = Folder::take(&path) {
            assert!(Instant::now() < until, "{error}");
            thread::yield_now();
        }
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let parent = tempfile::tempdir().unwrap();
        let file = parent.path().join("file");
        fs::write(&file, "").unwrap();
        // One in which nothing can be written, whoever tries.
        let full = parent.path().join("full");
        fs::create_dir_all(full.join("dq.lock")).unwrap();
        for folder in [file.join("data"), full] {
            let error = Folder::take(&folder).err().unwrap();
            let named = format!("{}: ", folder.display());
            assert!(
                error.starts_with(&named) && error.contains("--dir"),
                "{error}"
            );
        }
    }
}
