//! libFuzzer on `tidegate_fuzz::codec`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tidegate_fuzz::codec(data));
