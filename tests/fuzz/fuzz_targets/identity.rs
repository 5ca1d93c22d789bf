//! libFuzzer on `tidegate_fuzz::identity`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tidegate_fuzz::identity(data));
