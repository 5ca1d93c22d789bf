//! The table of bounds as TypeScript, so that both languages have the same checks and messages.

use crate::files;
use anyhow::Result;
use std::fmt::Write;
use std::path::Path;
use tidegate_core::{Field, KEY_EXPECTS, MAX_KEY_BYTES, MAX_NAME_BYTES, MAX_NOW_MS, MAX_SKEW_MS, NAME_EXPECTS};

fn source() -> Result<String> {
    let mut out =
        String::from("// Generated from crates/core/src/bounds.rs by `cargo run -p tidegate-xtask -- bounds`.\n\n");
    let names: Vec<String> = Field::ALL.iter().map(|field| format!("{:?}", field.bound().name)).collect();
    writeln!(out, "/** A number that a caller gives. */")?;
    writeln!(out, "export type Field = {};\n", names.join(" | "))?;
    writeln!(out, "/** The end of the sentence \"`field` must be …\", in the order of `tidegate_core::Field`. */")?;
    writeln!(out, "export const EXPECTS: Readonly<Record<Field, string>> = {{")?;
    for bound in Field::ALL.iter().map(|field| field.bound()) {
        writeln!(out, "  {}: {:?},", bound.name, bound.expects)?;
    }
    writeln!(out, "}};\n")?;
    writeln!(out, "/** The most tokens that a call is about. */")?;
    writeln!(out, "export const MAX_COUNT: number = {};", Field::Count.bound().max)?;
    writeln!(out, "export const NAME_EXPECTS: string = {NAME_EXPECTS:?};")?;
    writeln!(out, "export const KEY_EXPECTS: string = {KEY_EXPECTS:?};")?;
    writeln!(out, "export const MAX_NAME_BYTES: number = {MAX_NAME_BYTES};")?;
    writeln!(out, "export const MAX_KEY_BYTES: number = {MAX_KEY_BYTES};")?;
    writeln!(out, "/** The latest clock reading, ms since the Unix epoch. */")?;
    writeln!(out, "export const MAX_NOW_MS: number = {MAX_NOW_MS};")?;
    writeln!(out, "/** How far ahead of the clock a state may be before its writer's clock counts as broken, ms. */")?;
    writeln!(out, "export const MAX_SKEW_MS: number = {MAX_SKEW_MS};")?;
    writeln!(out, "/** Of every crate and package. */")?;
    writeln!(out, "export const VERSION: string = {:?};", env!("CARGO_PKG_VERSION"))?;
    Ok(out)
}

pub(crate) fn write(folder: &Path) -> Result<()> {
    files::write(&folder.join("bounds.ts"), source()?.as_bytes())
}
