//! Checks all invariants of a list: for tests.

use super::node::{ensure, Node};
use super::{Key, Skiplist};

/// All invariants.
impl<K: Key> Skiplist<K> {
    pub fn check_invariants(&self, tie: impl Fn(u32) -> u64) -> Result<(), String> {
        let order: Vec<_> = self
            .iter()
            .map(|(key, handle)| (key, (tie(handle), handle)))
            .collect();
        ensure(
            order.windows(2).all(|w| w[0] < w[1]),
            "entries out of order",
        )?;
        ensure(order.len() == self.len(), "wrong length")?;
        self.bottom.check()?;
        // How many entries come before each node of the level below.
        let mut starts: Vec<usize> = self.bottom.firsts().collect();
        let mut children: Vec<u32> = self.bottom.ids().collect();
        for (depth, level) in self.levels().iter().enumerate() {
            level.check()?;
            let links = level.nodes_from(level.first).flat_map(Node::items);
            ensure(
                links.map(|(_, l)| l.child).eq(children.iter().copied()),
                "links miss nodes",
            )?;
            let links = level.nodes_from(level.first).flat_map(Node::items);
            for ((key, link), start) in links.zip(&starts) {
                let below = &order[*start..];
                let below = &below[..below.len().min(link.span as usize)];
                ensure(
                    below.iter().map(|(k, _)| k.floor()).min() == Some(link.floor),
                    "wrong floor",
                )?;
                ensure(link.span == self.measure(depth, link.child).0, "wrong span")?;
                let separator = (key, link.tie);
                let parts =
                    *start == 0 || (order[start - 1] < separator && separator <= order[*start]);
                ensure(parts, "separator parts nothing")?;
                let below = depth.checked_sub(1).map(|d| &self.uppers[d][link.child]);
                let differs = below.is_some_and(|n| (n.keys()[0], n.values()[0].tie) != separator);
                ensure(*start == 0 || !differs, "separator differs below")?;
            }
            starts = level.firsts().map(|link| starts[link]).collect();
            children = level.ids().collect();
        }
        ensure(children.len() == 1 || self.is_empty(), "more than one top")?;
        ensure(
            self.levels()
                .last()
                .is_none_or(|top| top[top.first].len() > 1),
            "top skips nothing",
        )?;
        self.check_detached()
    }

    fn check_detached(&self) -> Result<(), String> {
        for level in &self.uppers[self.height()..] {
            level.check()?;
            ensure(level.ids().next().is_none(), "a node above the top")?;
        }
        let bare = self.uppers[self.height()..].last();
        ensure(bare.is_none_or(|l| l.has_nodes()), "a level without nodes")?;
        let mut below = self.bottom.detached().count();
        for level in &self.uppers {
            let count = level.detached().count();
            ensure(count <= below, "more nodes detached above than below")?;
            below = count;
        }
        Ok(())
    }
}
