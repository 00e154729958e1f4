//! Locks of which nobody keeps the news that another thread panicked.

use std::sync::{Mutex, MutexGuard};

/// A thread that panicked with the lock held has changed nothing by halves that matters here.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
