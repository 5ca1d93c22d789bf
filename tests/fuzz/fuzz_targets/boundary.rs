//! libFuzzer on `tidegate_fuzz::boundary`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tidegate_fuzz::boundary(data));
