//! Generic data structures that know nothing of queues: one per file, its memory layout drawn at the top.

#![cfg_attr(not(test), deny(missing_docs))]
#![deny(unsafe_code)]

pub(crate) mod allocated;
pub(crate) mod arena;
pub(crate) mod broken;
pub mod few;
pub(crate) mod lazy;
pub mod least;
pub(crate) mod ordered;
// A prefetch hint to the processor has no safe form.
#[allow(unsafe_code)]
pub(crate) mod prefetch;
pub mod relocate;
pub(crate) mod skiplist;
pub(crate) mod slab;
pub(crate) mod sparse;
pub(crate) mod table;
