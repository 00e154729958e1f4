//! Locks without poisoning.

use std::sync::{Mutex, MutexGuard};

/// A thread that panicked with the lock held has left nothing half changed that matters here.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
