//! The numbers that cross the boundary between JavaScript and Rust, as TypeScript: each has one definition, in Rust.

use crate::files;
use anyhow::Result;
use std::fmt::Write;
use std::path::Path;
use tidegate_core::{Kind, Reason};
use tidegate_table::Op;
use tidegate_wire as wire;

/// Name, value and documentation. Those of [`tidegate_wire`] are also the addon's.
const NUMBERS: [(&str, u32, &str); 18] = [
    ("OK", wire::OK, "Status bit: allowed."),
    ("RESERVED", wire::RESERVED, "Status bit: allowed at `retryAt`."),
    ("WRITES", wire::WRITES, "Status bit: there is a state to store."),
    ("REASON_SHIFT", wire::REASON_SHIFT, "Where the two bits of the reason begin in a status: see {@link REASONS}."),
    ("UNDECIDED", wire::UNDECIDED, "Status bit of a lease: only the store can decide."),
    ("INPUT_ERROR", wire::INPUT_ERROR, "Status bit: a number is out of range. The lowest byte is the field."),
    ("KEY_TOO_LONG", wire::KEY_TOO_LONG, "Status bit, of the addon only: the key is longer than a key may be."),
    ("FAILED", wire::FAILED, "Status bit, of the addon only: the folder cannot be used."),
    ("OP", wire::OP, "The bits of a call's flags that are the operation."),
    ("RESERVE", wire::RESERVE, "Flag of a call: tokens may be owed."),
    ("WITHOUT_KEY", wire::WITHOUT_KEY, "Flag of a call, of the addon only: there is no key."),
    ("RESET", wire::RESET, "Flag of a call, of the addon only: removes the state, and decides nothing."),
    ("NUMBERS", wire::NUMBERS as u32, "Doubles of a decision."),
    ("STATUS_AT", wire::NUMBERS as u32 - 1, "Where the status is in a decision on several calls."),
    ("NO_KEY", wire::NO_KEY, "Length of a key that is absent."),
    ("SAME_KEY", wire::SAME_KEY, "Length that stands for the limit and key of the last call."),
    ("NONE", wire::NONE, "Number that stands for no table or limit."),
    ("SHORT_KEY_BYTES", wire::SHORT_KEY_BYTES, "Keys of at most this many bytes are written in words of 4 bytes."),
];
const OPS: [(&str, Op); 5] =
    [("take", Op::Take), ("check", Op::Check), ("give", Op::Give), ("charge", Op::Charge), ("block", Op::Block)];
const REASONS: [Reason; 2] = [Reason::ExceedsCapacity, Reason::ExceedsClock];

fn source() -> Result<String> {
    let mut out =
        String::from("// Generated from crates/wire/src/lib.rs by `cargo run -p tidegate-xtask -- bounds`.\n\n");
    for (name, value, documentation) in NUMBERS {
        writeln!(out, "/** {documentation} */\nexport const {name} = {value};")?;
    }
    writeln!(out, "/** The operations of a call. */\nexport const OPS = {{")?;
    for (name, op) in OPS {
        writeln!(out, "  {name}: {},", op as u32)?;
    }
    writeln!(out, "}} as const;")?;
    let kinds = Kind::ALL.map(|kind| format!("{:?}", kind.as_str()));
    writeln!(
        out,
        "/** The kinds of a limit, by their number. */\nexport const KINDS = [{}] as const;",
        kinds.join(", ")
    )?;
    writeln!(out, "/** Where the numbers of a policy are; NaN is an absent one. */\nexport const POLICY = {{")?;
    for (place, field) in wire::POLICY.into_iter().enumerate() {
        writeln!(out, "  {}: {place},", field.bound().name)?;
    }
    writeln!(out, "}} as const;")?;
    let reasons: Vec<_> = REASONS.iter().map(|reason| format!("{:?}", reason.as_str())).collect();
    writeln!(out, "/** The reasons of a denial, by their number in a status; 0 is none. */")?;
    writeln!(out, "export const REASONS = [undefined, {}] as const;", reasons.join(", "))?;
    Ok(out)
}

pub(crate) fn write(folder: &Path) -> Result<()> {
    files::write(&folder.join("wire.ts"), source()?.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boundary_reads_each_operation_as_itself() {
        for (name, op) in OPS {
            assert_eq!(wire::call(0.0, 1.0, op as u32).map(|call| call.op), Ok(op), "{name}");
        }
    }

    #[test]
    fn the_boundary_reads_each_kind_and_each_number_of_a_policy_at_its_place() {
        for (place, kind) in Kind::ALL.into_iter().enumerate() {
            let policy = wire::policy(place as u32, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 0.0, 0.0]).expect("a policy");
            let numbers = [policy.rate(), policy.period(), policy.capacity(), policy.max_reserved()];
            assert_eq!((policy.kind(), numbers), (kind, [1.0, 2.0, 3.0, 4.0]));
            assert_eq!((policy.start(), policy.shards()), (Some(5.0), 6));
        }
        for (place, field) in wire::POLICY.into_iter().enumerate() {
            let mut numbers = [1.0; wire::NUMBERS];
            numbers[place] = f64::NEG_INFINITY;
            assert_eq!(wire::policy(0, &numbers), Err(wire::INPUT_ERROR | field as u32));
        }
    }

    #[test]
    fn a_reason_is_at_the_place_of_its_number() {
        for (place, reason) in REASONS.into_iter().enumerate() {
            assert_eq!(place + 1, reason as usize, "{}", reason.as_str());
        }
    }
}
