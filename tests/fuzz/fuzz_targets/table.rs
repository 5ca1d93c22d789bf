//! libFuzzer on `tidegate_fuzz::table`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tidegate_fuzz::table(data));
