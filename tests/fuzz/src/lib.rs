//! The fuzz targets: functions that take any bytes and panic where a promise is broken.
//!
//! `cargo run -p tidegate-xtask -- fuzz` builds and runs them for a while each; `cargo test` runs the
//! committed inputs (`corpus/`). The layout is that of cargo-fuzz.

mod algebra;
mod boundary;
mod codec;
mod draw;
mod file;
mod identity;
mod policy;
mod replay;
mod sound;
mod table;

pub use algebra::algebra;
pub use boundary::boundary;
pub use codec::codec;
pub use file::file;
pub use identity::identity;
pub use policy::policy;
pub use replay::replay;
pub use sound::is_sound;
pub use table::table;

/// A target: its name and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 8] = [
    ("algebra", algebra),
    ("boundary", boundary),
    ("codec", codec),
    ("file", file),
    ("identity", identity),
    ("policy", policy),
    ("replay", replay),
    ("table", table),
];
