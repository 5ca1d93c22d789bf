//! libFuzzer on `tidegate_fuzz::file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tidegate_fuzz::file(data));
