#![no_main]

use harness::{hostile, must_hold, sabotage};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| must_hold(hostile::operations(bytes, sabotage())));
