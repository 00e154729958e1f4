//! Reads a sorted set while others write to it.

use anyhow::Result;
use redis::{Connection, ToRedisArgs};

use super::{Pass, Source};
use crate::entry::{Entry, Item};

/// The reason of an item whose score is not an instant.
pub const NO_INSTANT: &str = "its score is not an instant between 1970 and 2109";

/// The reason of an item without a payload in the source.
pub const NO_PAYLOAD: &str = "it has no payload (expired, or finished but not removed)";

/// Members with their scores as the server writes them.
pub type Scored = Vec<(Vec<u8>, String)>;

/// A sorted set, read by ZSCAN: it shows every member that exists from beginning to end, even while others remove
/// members. (With pages by rank, each removed member would hide another one.)
pub struct Scan {
    pub server: Connection,
    pub key: String,
    cursor: Option<u64>,
    batch: usize,
}

impl Scan {
    pub fn new(server: Connection, key: &str, batch: usize) -> Scan {
        Scan {
            server,
            key: key.to_owned(),
            cursor: Some(0),
            batch,
        }
    }

    pub fn begin(&mut self) {
        self.cursor = Some(0);
    }

    pub fn size(&mut self) -> Result<u64> {
        Ok(redis::cmd("ZCARD").arg(&self.key).query(&mut self.server)?)
    }

    pub fn next_page(&mut self) -> Result<Option<Scored>> {
        let Some(cursor) = self.cursor else {
            return Ok(None);
        };
        let (next, page): (u64, Scored) = redis::cmd("ZSCAN")
            .arg(&self.key)
            .arg(cursor)
            .arg("COUNT")
            .arg(self.batch)
            .query(&mut self.server)?;
        self.cursor = (next != 0).then_some(next);
        Ok(Some(page))
    }
}

/// A source that is a sorted set, and the keys that belong to it.
pub trait Scanned {
    fn scan(&mut self) -> &mut Scan;

    fn title(&self) -> String;

    fn exists(&mut self) -> Result<bool> {
        let scan = self.scan();
        any_exists(&mut scan.server, &[&scan.key])
    }

    fn begin(&mut self, _: Pass) {
        self.scan().begin();
    }

    fn next_members(&mut self) -> Result<Option<Scored>> {
        self.scan().next_page()
    }

    /// The items of these members, one for each, in the same order.
    fn items(&mut self, page: Scored) -> Result<Vec<Item>>;

    fn delete(&mut self, entries: &[Entry]) -> Result<Vec<bool>>;

    fn remark(&mut self) -> Result<Option<String>> {
        Ok(None)
    }
}

impl<T: Scanned> Source for T {
    fn title(&self) -> String {
        Scanned::title(self)
    }

    fn exists(&mut self) -> Result<bool> {
        Scanned::exists(self)
    }

    fn size(&mut self) -> Result<u64> {
        self.scan().size()
    }

    fn begin(&mut self, pass: Pass) -> Result<()> {
        Scanned::begin(self, pass);
        Ok(())
    }

    fn next_page(&mut self) -> Result<Option<Vec<Item>>> {
        match self.next_members()? {
            None => Ok(None),
            Some(page) if page.is_empty() => Ok(Some(Vec::new())),
            Some(page) => self.items(page).map(Some),
        }
    }

    fn delete(&mut self, entries: &[Entry]) -> Result<Vec<bool>> {
        Scanned::delete(self, entries)
    }

    fn remark(&mut self) -> Result<Option<String>> {
        Scanned::remark(self)
    }
}

/// Whether one of these keys exists.
pub fn any_exists(server: &mut Connection, keys: &[impl ToRedisArgs]) -> Result<bool> {
    let there: u64 = redis::cmd("EXISTS").arg(keys).query(server)?;
    Ok(there > 0)
}

/// "one job waits", "17 jobs wait".
pub fn counted(count: u64, one: &str, many: &str) -> String {
    match count {
        1 => format!("one {one}"),
        _ => format!("{count} {many}"),
    }
}

/// `Item::Left` for an item that stays in the source.
pub fn left(name: Vec<u8>, why: &'static str) -> Item {
    Item::Left { name, why }
}

/// Runs a script that replies with the positions (from 1) of the entries that it deleted.
pub fn deleted(
    invocation: &redis::ScriptInvocation,
    server: &mut Connection,
    count: usize,
) -> Result<Vec<bool>> {
    let positions: Vec<usize> = invocation.invoke(server)?;
    let mut gone = vec![false; count];
    for position in positions {
        gone[position - 1] = true;
    }
    Ok(gone)
}
