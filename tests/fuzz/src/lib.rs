//! What libFuzzer is let loose on: a function of any bytes each, which panics where a promise is broken.
//!
//! `cargo run -p tidegate-xtask -- fuzz` builds and runs them for a while each; `cargo test` runs the inputs that were
//! kept (`corpus/`). They are laid out as cargo-fuzz wants them, too.

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

/// A target: its name, and what it does with any bytes.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
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
