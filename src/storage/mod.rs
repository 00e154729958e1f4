//! Data structures, generic and without a word of queues: one structure a file, its layout in memory drawn
//! at its top.

#![cfg_attr(not(test), deny(missing_docs))]
#![deny(unsafe_code)]

pub(crate) mod allocated;
pub(crate) mod arena;
pub(crate) mod broken;
pub(crate) mod lazy;
// A hint to the processor has no safe form.
pub mod least;
#[allow(unsafe_code)]
pub(crate) mod prefetch;
pub mod relocate;
pub(crate) mod skiplist;
pub(crate) mod slab;
pub(crate) mod table;
