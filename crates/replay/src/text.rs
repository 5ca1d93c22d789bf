//! The report as text.

use crate::error::visible;
use crate::report::{LimitReport, Report};
use crate::time;
use std::fmt::{self, Write};

pub(crate) fn of(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write(report, &mut text);
    text
}

fn write(report: &Report, to: &mut String) -> fmt::Result {
    let read = &report.read;
    let span = Span(read.to - read.from);
    writeln!(
        to,
        "{} requests in {span}, {} to {}",
        Count(read.requests),
        time::shown(read.from),
        time::shown(read.to)
    )?;
    writeln!(to, "  granted  {:>12}  {}", Count(report.granted), Share(report.granted, read.requests))?;
    writeln!(to, "  denied   {:>12}  {}", Count(report.denied), Share(report.denied, read.requests))?;
    if report.tokens != read.requests as f64 {
        writeln!(
            to,
            "  tokens   {:>12}  of which {} were granted",
            Amount(report.tokens),
            Amount(report.tokens_granted)
        )?;
    }
    let peaks = report
        .peaks
        .iter()
        .map(|peak| format!("{} tokens in {} at {}", Amount(peak.tokens), Span(peak.width), time::shown(peak.at)));
    writeln!(to, "  busiest  {}", peaks.collect::<Vec<_>>().join(", "))?;
    if let Some(waits) = &report.waits {
        writeln!(
            to,
            "  waits    half up to {}, 90 % up to {}, 99 % up to {}, all up to {}",
            Span(waits.p50),
            Span(waits.p90),
            Span(waits.p99),
            Span(waits.max)
        )?;
    }
    if report.never > 0 {
        writeln!(to, "  never    {:>12}  need more than a limit ever holds", Count(report.never))?;
    }
    for limit in &report.limits {
        writeln!(to)?;
        write_limit(limit, report, to)?;
    }
    write_notes(report, to)
}

fn write_limit(limit: &LimitReport, report: &Report, to: &mut String) -> fmt::Result {
    let requests = report.read.requests;
    let whose = if limit.key.is_empty() {
        "for all requests together".to_owned()
    } else {
        format!("by {}", limit.key.join(" and "))
    };
    let policy = Policy(limit.rate, limit.period, limit.capacity);
    let shadow = if limit.shadow { ", in shadow mode" } else { "" };
    writeln!(to, "{} ({}, {policy}), {whose}{shadow}", limit.name, limit.kind)?;
    let denies = if limit.shadow { "would deny" } else { "denies" };
    write!(to, "  {denies} {} requests ({})", Count(limit.denied), Share(limit.denied, requests))?;
    match limit.keys_denied {
        Some(keys) if limit.denied > 0 => writeln!(to, " of {} keys", Count(keys))?,
        _ => writeln!(to)?,
    }
    match limit.smallest_capacity {
        Some(capacity) => {
            let exact = if limit.smallest_capacity_exact { "" } else { " (not exact: keys were evicted)" };
            writeln!(to, "  smallest capacity that denies nothing: {}{exact}", Amount(capacity))?;
        }
        None => writeln!(to, "  no capacity is enough to deny nothing")?,
    }
    if let Some(found) = &limit.suggestion {
        let policy = Policy(found.rate, found.period, found.capacity);
        writeln!(
            to,
            "  suggested for a budget of {} %: {policy}; denies {} requests ({})",
            // 0.07 * 100 is 7.000000000000001.
            (found.budget * 1e12).round() / 1e10,
            Count(found.denied),
            Share(found.denied, requests)
        )?;
    }
    if !limit.worst.is_empty() {
        let exact = limit.worst.iter().all(|key| key.denied == key.at_most);
        writeln!(to, "  worst hit keys{}", if exact { "" } else { ", at least and at most so often" })?;
    }
    for key in &limit.worst {
        write!(to, "  {:>12}", Count(key.denied))?;
        if key.at_most != key.denied {
            write!(to, " to {}", Count(key.at_most))?;
        }
        let name: String = key.key.chars().map(visible).take(80).collect();
        writeln!(to, "  {name}  (waits up to {})", Span(key.longest_wait))?;
    }
    Ok(())
}

fn write_notes(report: &Report, to: &mut String) -> fmt::Result {
    let read = &report.read;
    let mut notes = report.notes.clone();
    if read.whole_seconds {
        notes.push("all times are whole seconds, so bursts may look up to a second denser than they were".to_owned());
    }
    if read.out_of_order > 0 {
        let (count, back) = (Count(read.out_of_order), Span(read.farthest_back));
        notes.push(format!(
            "{count} requests are out of order, by up to {back}; a clock that steps back adds no tokens"
        ));
    }
    if report.forgotten > 0 {
        notes.push(format!(
            "{} states were evicted before they were full; more fit with --max-keys",
            Count(report.forgotten)
        ));
    }
    if read.bad > 0 {
        notes.push(format!("{} of {} lines could not be used", Count(read.bad), Count(read.lines)));
    }
    if !notes.is_empty() {
        writeln!(to)?;
    }
    for note in notes {
        writeln!(to, "note: {note}")?;
    }
    for bad in &read.first_bad {
        writeln!(to, "  {}:{}: {}\n    {}", bad.file, bad.line, bad.why, bad.text)?;
    }
    Ok(())
}

/// A count with separated thousands.
struct Count(u64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut text = String::new();
        for (i, digit) in digits.chars().enumerate() {
            if i > 0 && (digits.len() - i).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        f.pad(&text)
    }
}

/// Tokens, which may have fractions.
struct Amount(f64);

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.fract() == 0.0 && self.0 < 9e15 {
            Count(self.0 as u64).fmt(f)
        } else {
            f.pad(&format!("{:.3}", self.0))
        }
    }
}

struct Share(u64, u64);

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} %", self.0 as f64 * 100.0 / self.1.max(1) as f64)
    }
}

struct Policy(f64, f64, f64);

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rate {} per {}, capacity {}", Amount(self.0), Span(self.1), Amount(self.2))
    }
}

/// A duration in ms, printed in a suitable unit.
struct Span(f64);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(86_400_000.0, "d"), (3_600_000.0, "h"), (60_000.0, "min"), (1000.0, "s")];
        match units.iter().find(|(ms, _)| self.0 >= *ms) {
            Some((ms, unit)) => {
                let number = format!("{:.2}", self.0 / ms);
                write!(f, "{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
            }
            None => write!(f, "{} ms", self.0),
        }
    }
}

#[cfg(test)]
mod tests;
