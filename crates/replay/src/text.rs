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
    writeln!(
        to,
        "{} requests in {}, {} to {}",
        count(read.requests),
        span(read.to - read.from),
        time::shown(read.from),
        time::shown(read.to)
    )?;
    writeln!(to, "  granted  {:>12}  {}", count(report.granted), share(report.granted, read.requests))?;
    writeln!(to, "  denied   {:>12}  {}", count(report.denied), share(report.denied, read.requests))?;
    if report.tokens != read.requests as f64 {
        writeln!(
            to,
            "  tokens   {:>12}  of which {} were granted",
            amount(report.tokens),
            amount(report.tokens_granted)
        )?;
    }
    let peaks = report
        .peaks
        .iter()
        .map(|peak| format!("{} tokens in {} at {}", amount(peak.tokens), span(peak.width), time::shown(peak.at)));
    writeln!(to, "  busiest  {}", peaks.collect::<Vec<_>>().join(", "))?;
    if let Some(waits) = &report.waits {
        writeln!(
            to,
            "  waits    half up to {}, 90 % up to {}, 99 % up to {}, all up to {}",
            span(waits.p50),
            span(waits.p90),
            span(waits.p99),
            span(waits.max)
        )?;
    }
    if report.never > 0 {
        writeln!(to, "  never    {:>12}  need more than a limit ever holds", count(report.never))?;
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
    let numbers = policy(limit.rate, limit.period, limit.capacity);
    let shadow = if limit.shadow { ", in shadow mode" } else { "" };
    writeln!(to, "{} ({}, {numbers}), {whose}{shadow}", limit.name, limit.kind)?;
    let denies = if limit.shadow { "would deny" } else { "denies" };
    write!(to, "  {denies} {} requests ({})", count(limit.denied), share(limit.denied, requests))?;
    match limit.keys_denied {
        Some(keys) if limit.denied > 0 => writeln!(to, " of {} keys", count(keys))?,
        _ => writeln!(to)?,
    }
    match limit.smallest_capacity {
        Some(capacity) => {
            let exact = if limit.smallest_capacity_exact { "" } else { " (not exact: keys were evicted)" };
            writeln!(to, "  smallest capacity that denies nothing: {}{exact}", amount(capacity))?;
        }
        None => writeln!(to, "  no capacity is enough to deny nothing")?,
    }
    if let Some(found) = &limit.suggestion {
        writeln!(
            to,
            "  suggested for a budget of {} %: {}; denies {} requests ({})",
            // 0.07 * 100 is 7.000000000000001.
            (found.budget * 1e12).round() / 1e10,
            policy(found.rate, found.period, found.capacity),
            count(found.denied),
            share(found.denied, requests)
        )?;
    }
    if !limit.worst.is_empty() {
        let exact = limit.worst.iter().all(|key| key.denied == key.at_most);
        writeln!(to, "  worst hit keys{}", if exact { "" } else { ", at least and at most so often" })?;
    }
    for key in &limit.worst {
        write!(to, "  {:>12}", count(key.denied))?;
        if key.at_most != key.denied {
            write!(to, " to {}", count(key.at_most))?;
        }
        let name: String = key.key.chars().map(visible).take(80).collect();
        writeln!(to, "  {name}  (waits up to {})", span(key.longest_wait))?;
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
        notes.push(format!(
            "{} requests are out of order, by up to {}; a clock that steps back adds no tokens",
            count(read.out_of_order),
            span(read.farthest_back)
        ));
    }
    if report.forgotten > 0 {
        notes.push(format!(
            "{} states were evicted before they were full; more fit with --max-keys",
            count(report.forgotten)
        ));
    }
    if read.bad > 0 {
        notes.push(format!("{} of {} lines could not be used", count(read.bad), count(read.lines)));
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
fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Tokens, which may have fractions.
fn amount(tokens: f64) -> String {
    if tokens.fract() == 0.0 && tokens < 9e15 { count(tokens as u64) } else { format!("{tokens:.3}") }
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.2} %", part as f64 * 100.0 / whole.max(1) as f64)
}

fn policy(rate: f64, period: f64, capacity: f64) -> String {
    format!("rate {} per {}, capacity {}", amount(rate), span(period), amount(capacity))
}

/// A duration in ms, in a suitable unit.
fn span(ms: f64) -> String {
    let units = [(86_400_000.0, "d"), (3_600_000.0, "h"), (60_000.0, "min"), (1000.0, "s")];
    let Some((length, unit)) = units.into_iter().find(|(length, _)| ms >= *length) else { return format!("{ms} ms") };
    let number = format!("{:.2}", ms / length);
    format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests;
