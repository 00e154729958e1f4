//! All code of users is called through this file: handlers, hooks, middleware and the texts of errors. It may do
//! anything except end the process: its caller continues.

use crate::error::BoxError;
use std::any::Any;
use std::error::Error;
use std::fmt;
use std::future::{poll_fn, Future};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::task::Poll;

/// Errors that are each other's sources, perhaps in a circle.
const MOST_SOURCES: usize = 100;
pub(crate) const LONGEST_REASON: usize = 1024;

/// What a panic said.
#[derive(Debug, thiserror::Error)]
#[error("panic: {0}")]
pub(crate) struct Panicked(pub String);

pub(crate) fn catch<T>(f: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(f)).map_err(said)
}

fn said(raised: Box<dyn Any + Send>) -> Panicked {
    let raised = match raised.downcast::<String>() {
        Ok(text) => return Panicked(*text),
        Err(other) => other,
    };
    let text = raised
        .downcast_ref::<&str>()
        .map_or("with a value that is no text", |text| *text)
        .to_owned();
    std::mem::forget(raised); // dropping it may panic
    Panicked(text)
}

/// A value of the user's, whose drop may panic.
#[derive(Debug)]
pub(crate) struct Kept<T>(Option<T>);

impl<T> Kept<T> {
    pub fn new(value: T) -> Self {
        Kept(Some(value))
    }

    pub fn get(&self) -> Option<&T> {
        self.0.as_ref()
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        let value = self.0.take();
        _ = catch(move || drop(value));
    }
}

/// The output of a user's future, which may panic when it is made, polled or dropped, also unfinished.
pub(crate) async fn guarded<F: Future>(make: impl FnOnce() -> F) -> Result<F::Output, Panicked> {
    let mut future: Kept<Pin<Box<F>>> = Kept::new(Box::pin(catch(make)?));
    poll_fn(|context| {
        let Some(future) = &mut future.0 else {
            return Poll::Pending; // the future is there until this one is dropped
        };
        match catch(|| future.as_mut().poll(context)) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(panicked) => Poll::Ready(Err(panicked)),
        }
    })
    .await
}

/// As `tracing`'s macros, with a subscriber that may panic.
macro_rules! log {
    ($level:ident, $($said:tt)+) => {
        _ = $crate::guard::catch(|| tracing::$level!($($said)+))
    };
}
pub(crate) use log;

/// The text of an error, or why it has none.
pub(crate) fn text_of(error: &(dyn Error + 'static)) -> String {
    shown(format_args!("{error}"))
}

/// The formatted text, as far as it can be made and fits.
pub(crate) fn shown(text: fmt::Arguments<'_>) -> String {
    let mut page = Page(String::new());
    match catch(|| fmt::write(&mut page, text)) {
        Ok(_) => page.0, // a text that is too long, or breaks off, is an error here
        Err(panicked) => format!("no text: {panicked}"),
    }
}

/// Limits a text: an error may write for ever.
struct Page(String);

impl fmt::Write for Page {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.push_str(text);
        if self.0.len() <= LONGEST_REASON {
            return Ok(());
        }
        self.0 = clean(std::mem::take(&mut self.0), LONGEST_REASON);
        Err(fmt::Error)
    }
}

/// The name of an error's type, as far as it can be known: of a boxed error, what its `Debug` begins with.
pub(crate) fn name_of(error: &(dyn Error + 'static)) -> String {
    let name: String = shown(format_args!("{error:?}"))
        .chars()
        .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
        .take(64)
        .collect();
    match name.chars().next() {
        Some(first) if first.is_uppercase() => name,
        _ => "Error".to_owned(),
    }
}

/// An error and its sources, the outermost first.
pub(crate) fn sources(error: &BoxError) -> Vec<&(dyn Error + 'static)> {
    let mut all: Vec<&(dyn Error + 'static)> = vec![error.as_ref()];
    while all.len() < MOST_SOURCES {
        let last = all[all.len() - 1];
        match catch(|| last.source()) {
            Ok(Some(next)) => all.push(next),
            _ => break,
        }
    }
    all
}

/// Cuts a text to at most this many bytes, between characters.
pub(crate) fn clean(mut text: String, most: usize) -> String {
    if text.len() > most {
        let end = (0..=most)
            .rev()
            .find(|end| text.is_char_boundary(*end))
            .unwrap_or(0);
        text.truncate(end);
    }
    text
}
