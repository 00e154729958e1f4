//! How the shards of a table are stored: see the picture in the parent.

use super::{grow, trim, Shard, PAGE, SHARD};
use crate::storage::broken::there;

#[derive(Clone)]
pub(super) enum Shards {
    /// The only shard, while there is no other.
    One(Shard),
    Pages(Vec<Vec<Shard>>),
}

impl Shards {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Shard> {
        let (one, pages): (_, &[Vec<Shard>]) = match self {
            Shards::One(shard) => (Some(shard), &[]),
            Shards::Pages(pages) => (None, pages),
        };
        one.into_iter().chain(pages.iter().flatten())
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&Shard> {
        match self {
            Shards::Pages(pages) => pages.get(index / PAGE)?.get(index % PAGE),
            Shards::One(shard) => (index == 0).then_some(shard),
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Shard> {
        match self {
            Shards::Pages(pages) => pages.get_mut(index / PAGE)?.get_mut(index % PAGE),
            Shards::One(shard) => (index == 0).then_some(shard),
        }
    }

    pub(super) fn push(&mut self, shard: Shard) {
        let pages = match self {
            Shards::One(only) => {
                *self = Shards::Pages(vec![vec![std::mem::take(only), shard]]);
                return;
            }
            Shards::Pages(pages) => pages,
        };
        if pages.last().is_none_or(|page| page.len() == PAGE) {
            if pages.len() == pages.capacity() {
                grow(pages, 1);
            }
            pages.push(Vec::new());
        }
        let page = there(pages.last_mut(), SHARD);
        if page.len() == page.capacity() {
            grow(page, 1);
        }
        page.push(shard);
    }

    /// Removes the last shard, unless it is the only one.
    pub(super) fn pop(&mut self) -> Option<Shard> {
        let Shards::Pages(pages) = self else {
            return None;
        };
        let page = pages.last_mut()?;
        let shard = page.pop()?;
        trim(page);
        if page.is_empty() {
            pages.pop();
            trim(pages);
        }
        if let [page] = &mut pages[..] {
            if let [only] = &mut page[..] {
                *self = Shards::One(std::mem::take(only));
            }
        }
        Some(shard)
    }
}
