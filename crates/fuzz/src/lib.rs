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
#[path = "../../file/src/meta.rs"]
mod meta;
mod policy;
mod replay;
// The very code, without the store around it, whose crate lends neither.
#[path = "../../file/src/row.rs"]
mod row;
#[path = "../../policy/tests/sound/mod.rs"]
mod sound;
mod table;
#[path = "../../file/src/verify.rs"]
mod verify;

pub use algebra::algebra;
pub use boundary::boundary;
pub use codec::codec;
pub use file::file;
pub use identity::identity;
pub use policy::policy;
pub use replay::replay;
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
