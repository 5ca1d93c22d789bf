//! A replay from its files to its report.

use crate::capacity::smallest;
use crate::chart;
use crate::decider::Tables;
use crate::error::Error;
use crate::fields::{Record, Slots, Wanted};
use crate::html;
use crate::inline;
use crate::key;
use crate::options::Options;
use crate::reader::Reader;
use crate::report::{LimitReport, Report, Suggestion, WorstKey};
use crate::subject::{Subject, subjects};
use crate::suggest::propose;
use crate::tally::Tally;
use crate::text;
use crate::trace::{Spool, Trace, Writer};
use serde::Serialize;
use std::ops::ControlFlow;
use tsify::Tsify;

/// The result of a replay.
#[derive(Clone, Debug, Serialize, Tsify)]
#[tsify(missing_as_null)]
pub struct Replayed {
    /// The figures.
    pub report: Report,
    /// The report as text.
    pub text: String,
    /// The chart, if `chart` is set: a self-contained SVG for light and dark pages.
    pub svg: Option<String>,
    /// Chart and text on one page.
    pub html: Option<String>,
}

/// A replay in progress: the host reads the files, and this decides their requests.
///
/// A call that returns an error ends the replay.
pub struct Replay {
    reader: Reader,
    limits: Vec<Subject>,
    notes: Vec<String>,
    /// The share of denials that a proposal may have.
    budget: Option<f64>,
    chart: bool,
    tables: Tables,
}

/// Receives the requests as they are read.
pub(crate) struct Sink {
    /// Absent if the limit is to be proposed: until then, requests are only stored.
    tally: Option<Tally>,
    writer: Writer,
}

impl Sink {
    #[inline]
    pub(crate) fn visit(&mut self, record: &Record) -> Result<(), Error> {
        if let Some(tally) = &mut self.tally {
            tally.add(record);
        }
        self.writer.write(record)
    }
}

impl Replay {
    /// Prepares a replay. `secret` is 128 random bits, which the hashes of keys depend on; `spool` is empty, and holds
    /// the requests until the end.
    ///
    /// # Errors
    /// If an option or a limit is not legal.
    pub fn new(options: &Options, secret: [u64; 2], spool: Box<dyn Spool>) -> Result<Replay, Error> {
        let tables = Tables { max_keys: options.max_keys(), secret };
        let budget = options.suggest.as_deref().map(inline::share).transpose()?;
        options.budget.as_deref().map(inline::share).transpose()?;
        let mut slots = Slots::new(options.time.as_deref());
        let (limits, notes) = subjects(options, &mut slots)?;
        let tally = if options.proposes() { None } else { Some(Tally::new(&limits, tables)?) };
        let sink = Sink { tally, writer: Writer::new(spool, limits.len(), slots.keys()) };
        let wanted = Wanted::new(slots, limits.iter().map(|limit| limit.scope.clone()).collect());
        let reader = Reader::new(wanted, options.format, sink);
        Ok(Replay { reader, limits, notes, budget, chart: options.chart, tables })
    }

    /// Begins a file; `name` is for messages. It ends the previous file.
    ///
    /// # Errors
    /// Where the end of the previous file is wrong: as [`Replay::push`].
    pub fn begin(&mut self, name: &str) -> Result<(), Error> {
        self.reader.begin(name)
    }

    /// Decides the requests of the next bytes of the file, unpacked, in chunks of any size.
    ///
    /// # Errors
    /// If the file has no known format, or the spool fails. A bad line is counted instead.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), Error> {
        self.reader.push(chunk)
    }

    /// Ends the file: its last line needs no end of line, and a short file is read here.
    ///
    /// # Errors
    /// As [`Replay::push`].
    pub fn end(&mut self) -> Result<(), Error> {
        self.reader.end_file()
    }

    /// Requests so far.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.reader.requests()
    }

    /// Ends the last file, and reads the requests again for the smallest capacity and for proposals.
    ///
    /// # Errors
    /// If no line is a request, or the spool fails.
    pub fn finish(self) -> Result<Replayed, Error> {
        let Replay { reader, mut limits, mut notes, budget, chart, tables } = self;
        let (read, lacking, sink) = reader.end()?;
        notes.extend(lacking);
        let mut trace = sink.writer.finish()?;
        let suggest = |limit| budget.map_or(Ok(None), |budget| propose(&mut trace, limit, budget, tables));
        let suggestions = limits.iter().map(suggest).collect::<Result<Vec<_>, _>>()?;
        let tally = if let Some(tally) = sink.tally {
            tally
        } else {
            for (limit, suggestion) in limits.iter_mut().zip(&suggestions) {
                if let Some(policy) = suggestion.as_ref().and_then(|found| limit.with(found.rate, found.capacity)) {
                    limit.policy = policy;
                }
            }
            let mut tally = Tally::new(&limits, tables)?;
            trace.each(|record| {
                tally.add(record);
                ControlFlow::Continue(())
            })?;
            tally
        };
        for limit in
            limits.iter().filter(|limit| !limit.scope.matches.is_empty() && !tally.limits[limit.number].applied)
        {
            notes.push(format!("{}: no request matches; the log may lack the fields of its `match`", limit.name));
        }
        let mut reports = Vec::new();
        for (limit, suggestion) in limits.iter().zip(suggestions) {
            reports.push(limit_report(&mut trace, &tally, limit, suggestion, tables)?);
        }
        let report = Report {
            read,
            granted: tally.granted,
            denied: tally.denied,
            tokens: tally.tokens,
            tokens_granted: tally.tokens_granted,
            limits: reports,
            waits: tally.waits(),
            never: tally.never,
            forgotten: tally.forgotten(),
            peaks: tally.peaks(),
            notes,
        };
        let text = text::of(&report);
        let svg = if chart { Some(chart::draw(&tally.series)?) } else { None };
        let html = svg.as_ref().map(|svg| html::page(&report, &text, svg));
        Ok(Replayed { report, text, svg, html })
    }
}

fn limit_report(
    trace: &mut Trace,
    tally: &Tally,
    limit: &Subject,
    suggestion: Option<Suggestion>,
    tables: Tables,
) -> Result<LimitReport, Error> {
    let limited = &tally.limits[limit.number];
    let mut worst = limited.worst();
    if limit.rule && limit.fields.len() == 1 {
        // The part alone, without its length.
        for WorstKey { key, .. } in worst.iter_mut().filter(|worst| !worst.key.starts_with(key::HASHED)) {
            key.drain(..key.find(':').map_or(0, |at| at + 1));
        }
    }
    let least = smallest(trace, limit, &tally.debts.heavy[limit.number], tables)?;
    Ok(LimitReport {
        name: limit.name.clone(),
        kind: limit.policy.kind().as_str(),
        key: limit.fields.clone(),
        rate: limit.policy.rate(),
        period: limit.policy.period(),
        capacity: limit.policy.capacity(),
        shadow: limit.scope.shadow,
        denied: limited.denied,
        keys_denied: limited.keys_denied(),
        worst,
        smallest_capacity: least.tokens,
        smallest_capacity_exact: least.exact,
        suggestion,
    })
}
