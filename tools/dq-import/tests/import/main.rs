//! dq import against real servers, and against structures that the real libraries made.
//!
//! Environment as for the module's own tests (DQ_SERVER, DQ_MODULE), and DQ_IMPORT_REAL: the folder that
//! tests/real/prepare.sh filled. What is missing there is skipped, except where CI is set.

mod beanstalkd;
mod canaries;
mod libraries;
mod live;
mod moving;
mod outside;
mod plain;
mod recurring;
#[allow(unused_imports)] // its other users take the rest
#[path = "../../../../tests/support/mod.rs"]
mod support;
mod whole;
mod world;
