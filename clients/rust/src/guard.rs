//! All code of users is called through this file: handlers, hooks, middleware, and the texts of errors. It may do
//! anything but end the process: its caller goes on.

use crate::error::BoxError;
use std::any::Any;
use std::error::Error;
use std::future::{poll_fn, Future};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::task::Poll;

/// Of errors that say that others are their sources, perhaps in a circle.
const MOST_SOURCES: usize = 100;
const LONGEST_TEXT: usize = 1 << 14;

/// What a panic said.
#[derive(Debug, thiserror::Error)]
#[error("panic: {0}")]
pub(crate) struct Panicked(pub String);

pub(crate) fn door<T>(f: impl FnOnce() -> T) -> Result<T, Panicked> {
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
    std::mem::forget(raised); // it may panic when it is dropped
    Panicked(text)
}

/// The output of a future of users', which may panic when it is made, polled and dropped.
pub(crate) async fn guarded<F: Future>(make: impl FnOnce() -> F) -> Result<F::Output, Panicked> {
    let mut future: Pin<Box<F>> = Box::pin(door(make)?);
    let output = poll_fn(|context| match door(|| future.as_mut().poll(context)) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(panicked) => Poll::Ready(Err(panicked)),
    })
    .await;
    _ = door(move || drop(future));
    output
}

/// What an error says, or why it says nothing.
pub(crate) fn text_of(error: &(dyn Error + 'static)) -> String {
    match door(|| error.to_string()) {
        Ok(text) => clean(text, LONGEST_TEXT),
        Err(panicked) => format!("no text: {panicked}"),
    }
}

/// Its type, as far as it can be known: of an error in a box, what its `Debug` begins with.
pub(crate) fn name_of(error: &(dyn Error + 'static)) -> String {
    let shown = door(|| format!("{error:?}")).unwrap_or_default();
    let name: String = shown
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
        match door(|| last.source()) {
            Ok(Some(next)) => all.push(next),
            _ => break,
        }
    }
    all
}

/// At most so many bytes, and no half letter.
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
