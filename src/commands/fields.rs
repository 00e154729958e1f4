//! Replies that are maps: the fields are listed once, and count themselves.

use crate::server::api::Ctx;
use std::cell::Cell;

/// The list is run twice: to count the fields, then to show them.
pub struct Fields<'a> {
    ctx: Ctx<'a>,
    is_shown: bool,
    count: Cell<usize>,
}

impl<'a> Fields<'a> {
    pub fn reply(ctx: Ctx<'a>, list: impl Fn(&Self)) {
        let mut fields = Fields {
            ctx,
            is_shown: false,
            count: Cell::new(0),
        };
        list(&fields);
        ctx.reply_map(fields.count.get());
        fields.is_shown = true;
        list(&fields);
    }

    /// A field whose value is written by `value`.
    pub fn with(&self, name: &str, value: impl FnOnce(Ctx<'a>)) {
        if self.is_shown {
            self.ctx.reply_bytes(name.as_bytes());
            value(self.ctx);
        } else {
            self.count.set(self.count.get() + 1);
        }
    }

    pub fn integer(&self, name: &str, value: i64) {
        self.with(name, |ctx| ctx.reply_integer(value));
    }

    pub fn integer_or_null(&self, name: &str, value: Option<u64>) {
        self.with(name, |ctx| match value {
            Some(value) => ctx.reply_integer(value as i64),
            None => ctx.reply_null(),
        });
    }

    pub fn bytes_or_null(&self, name: &str, value: Option<&[u8]>) {
        self.with(name, |ctx| match value {
            Some(value) => ctx.reply_bytes(value),
            None => ctx.reply_null(),
        });
    }

    pub fn integers(&self, name: &str, values: impl Iterator<Item = u64> + Clone) {
        self.with(name, |ctx| reply_integers(ctx, values));
    }
}

pub fn reply_integers(ctx: Ctx<'_>, values: impl Iterator<Item = u64> + Clone) {
    ctx.reply_array(values.clone().count());
    values.for_each(|value| ctx.reply_integer(value as i64));
}
