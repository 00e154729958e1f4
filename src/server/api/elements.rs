//! A reply whose elements are written while the queue produces them. If a broken invariant stops
//! that in the middle, the reply is completed: otherwise the client would take the next replies for
//! the rest of this one.

use super::ctx::{Ctx, BUG};
use std::cell::Cell;
use std::thread::panicking;

thread_local! {
    /// A reply was completed while a panic unwound: the command has replied.
    static HAS_REPLIED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a command that panicked has replied all the same.
pub fn has_replied() -> bool {
    HAS_REPLIED.take()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// One element, without an array around it; or none yet.
    Single,
    /// An array whose length was given at its start.
    Fixed(usize),
    /// An array whose length is set at its end.
    Open,
}

/// The elements written so far.
pub struct Elements<'a> {
    ctx: Ctx<'a>,
    shape: Shape,
    len: usize,
}

impl<'a> Elements<'a> {
    /// Begins a reply of one element, or of an array with any number of them.
    pub fn begin(ctx: Ctx<'a>, in_array: bool) -> Self {
        if in_array {
            ctx.reply_array_of_unknown_len();
        }
        let shape = if in_array { Shape::Open } else { Shape::Single };
        Elements { ctx, shape, len: 0 }
    }

    /// Begins a reply of one element, or of an array with `count` of them.
    pub fn begin_fixed(ctx: Ctx<'a>, count: Option<usize>) -> Self {
        count.iter().for_each(|&count| ctx.reply_array(count));
        Elements {
            ctx,
            shape: count.map_or(Shape::Single, Shape::Fixed),
            len: 0,
        }
    }

    /// Counts an element that is about to be written.
    pub fn count(&mut self) {
        self.len += 1;
    }

    fn make_whole(&mut self) {
        match self.shape {
            Shape::Single if self.len == 0 => return,
            Shape::Single => {}
            Shape::Fixed(count) => (self.len..count).for_each(|_| self.ctx.reply_error(BUG)),
            Shape::Open => {
                self.ctx.reply_error(BUG);
                self.len += 1;
            }
        }
        HAS_REPLIED.set(true);
    }
}

impl Drop for Elements<'_> {
    fn drop(&mut self) {
        if panicking() {
            self.make_whole();
        }
        if self.shape == Shape::Open {
            self.ctx.set_array_len(self.len);
        }
    }
}
