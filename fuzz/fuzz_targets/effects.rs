#![no_main]

use harness::{broken, hostile, must_hold};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| must_hold(hostile::effects(bytes, broken())));
