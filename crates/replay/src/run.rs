//! A replay from end to end.

use crate::capacity::smallest;
use crate::chart;
use crate::error::Error;
use crate::fields::{Slots, Wanted};
use crate::html;
use crate::inline;
use crate::options::Options;
use crate::reader::{Progress, Reader};
use crate::report::{LimitReport, Read, Report, Suggestion};
use crate::subject::{Subject, subjects};
use crate::suggest::propose;
use crate::tally::Tally;
use crate::text;
use crate::trace::{Trace, Writer};
use serde::Serialize;
use std::ops::ControlFlow;
use tidegate_core::Kind;

/// What a replay makes.
#[derive(Clone, Debug, Serialize)]
pub struct Replayed {
    /// The figures.
    pub report: Report,
    /// The same for people.
    pub text: String,
    /// The picture, where one was asked for: an SVG that needs nothing else, for a light and for a dark page.
    pub svg: Option<String>,
    /// Picture and text on one page.
    pub html: Option<String>,
}

/// Reads the log and tells what the limits would have done to it.
///
/// Fails where a file cannot be read or has no known format, where a limit is not legal, and where no line is a request;
/// a bad line among good ones is counted.
pub fn replay(options: &Options, progress: &mut dyn FnMut(Progress)) -> Result<Replayed, Error> {
    let max_keys = options.max_keys();
    let budget = options.suggest.as_deref().map(inline::share).transpose()?;
    options.budget.as_deref().map(inline::share).transpose()?;
    let mut slots = Slots::new(options.time.as_deref());
    let (mut limits, notes) = subjects(options, &mut slots)?;
    let names: Vec<Vec<String>> = limits.iter().map(|limit| slots.key_names(limit.key)).collect();
    let keys = slots.keys();
    let mut writer = Writer::new()?;
    let mut tally = Tally::new(&limits, max_keys)?;
    // Where a policy is still to be proposed, the requests are only kept.
    let open = limits.iter().any(|limit| limit.open);
    let wanted = Wanted::new(slots, limits.iter().map(|limit| limit.about.clone()).collect());
    let mut reader = Reader { wanted, format: options.format, told: Read::default(), progress };
    reader.read(&options.files, |record| {
        if !open {
            tally.add(record);
        }
        writer.write(record)
    })?;
    let read = reader.told;
    let mut trace = writer.finish(limits.len(), keys)?;
    progress(Progress { bytes: 0, total: None, requests: read.requests, read: true });

    let suggestions = suggestions(&mut trace, &limits, budget, max_keys)?;
    if open {
        for (limit, suggestion) in limits.iter_mut().zip(&suggestions) {
            if let Some(policy) = suggestion.as_ref().and_then(|found| limit.with(found.rate, found.capacity)) {
                limit.policy = policy;
            }
        }
        tally = Tally::new(&limits, max_keys)?;
        trace.each(|record| {
            tally.add(record);
            ControlFlow::Continue(())
        })?;
    }
    let mut told = Vec::new();
    for ((limit, key), suggestion) in limits.iter().enumerate().zip(names).zip(suggestions) {
        told.push(limit_report(&mut trace, &tally, limit, key, suggestion, max_keys)?);
    }
    let report = Report {
        read,
        granted: tally.granted,
        denied: tally.denied,
        tokens: tally.tokens,
        tokens_granted: tally.tokens_granted,
        limits: told,
        waits: tally.waits(),
        never: tally.never,
        forgotten: tally.forgotten(),
        peaks: tally.peaks(),
        notes,
    };
    let text = text::of(&report);
    let svg = if options.chart { Some(chart::draw(&tally.series)?) } else { None };
    let html = svg.as_ref().map(|svg| html::page(&report, &text, svg));
    Ok(Replayed { report, text, svg, html })
}

fn suggestions(
    trace: &mut Trace,
    limits: &[Subject],
    budget: Option<f64>,
    max_keys: u32,
) -> Result<Vec<Option<Suggestion>>, Error> {
    let Some(budget) = budget else { return Ok(vec![None; limits.len()]) };
    let mut all = Vec::new();
    for limit in limits.iter().enumerate() {
        let found = propose(trace, limit, budget, max_keys)?;
        all.push(found.map(|found| Suggestion {
            budget,
            rate: found.rate,
            period: limit.1.policy.period(),
            capacity: found.capacity,
            denied: found.denied,
        }));
    }
    Ok(all)
}

fn limit_report(
    trace: &mut Trace,
    tally: &Tally,
    (i, limit): (usize, &Subject),
    key: Vec<String>,
    suggestion: Option<Suggestion>,
    max_keys: u32,
) -> Result<LimitReport, Error> {
    let least = smallest(trace, (i, limit), &tally.debts.heavy[i], max_keys)?;
    Ok(LimitReport {
        name: limit.name.clone(),
        kind: match limit.policy.kind() {
            Kind::TokenBucket => "token bucket",
            Kind::FixedWindow => "fixed window",
        },
        key,
        rate: limit.policy.rate(),
        period: limit.policy.period(),
        capacity: limit.policy.capacity(),
        denied: tally.denied_by[i],
        keys_denied: tally.keys_denied(i),
        worst: tally.worst(i),
        smallest_capacity: least.tokens,
        smallest_capacity_exact: least.exact,
        suggestion,
    })
}
