//! Timestamps of logs as ms since the Unix epoch.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use tidegate_core::check_now;

/// `10/Oct/2000:13:55:36 -0700`, and with a fraction of the second, as HAProxy has it.
const COMMON: &str = "%d/%b/%Y:%H:%M:%S%.f %z";
/// `2000-10-10 13:55:36 -0700`, as Ruby writes it.
const SPACED: &str = "%Y-%m-%d %H:%M:%S%.f %z";
/// Numbers below these are seconds, ms and microseconds since the epoch; beyond the last, nanoseconds. As seconds, the
/// first is the year 5138; as ms, it is 1973.
const UNITS: [(f64, f64); 3] = [(1e11, 1000.0), (1e14, 1.0), (1e17, 1e-3)];

/// Reads timestamps. Lines of one second have the same text, so the last timestamp is cached.
#[derive(Default)]
pub(crate) struct Times {
    text: Vec<u8>,
    ms: f64,
}

impl Times {
    /// ms since the Unix epoch of a timestamp: a number of seconds, ms, microseconds or nanoseconds, RFC 3339, or the
    /// format of web servers.
    pub(crate) fn read(&mut self, text: &[u8]) -> Result<f64, String> {
        if !text.is_empty() && text == self.text {
            return Ok(self.ms);
        }
        let ms = parse(text).ok_or_else(|| format!("not a time: {:?}", crate::error::shown(text)))?;
        self.text.clear();
        self.text.extend_from_slice(text);
        self.ms = ms;
        Ok(ms)
    }
}

/// Integer ms since the epoch of a number; its size determines its unit.
pub(crate) fn of_number(number: f64) -> Option<f64> {
    let per_ms = UNITS.iter().find(|(below, _)| number < *below).map_or(1e-6, |(_, factor)| *factor);
    // Rounded to the microsecond first, because a double does not hold 1700000000.123 exactly.
    check_now(((number * per_ms) * 1000.0).round() / 1000.0).ok()
}

fn parse(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let third = text.as_bytes().get(2);
    if third == Some(&b'/') {
        let read = strtime::parse(COMMON, text).ok()?;
        return of_timestamp(read.to_timestamp().ok()?);
    }
    if let Ok(number) = text.parse::<f64>() {
        return of_number(number);
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return of_timestamp(at);
    }
    // Without an offset the time is UTC.
    match text.strip_suffix(" UTC").unwrap_or(text).parse::<DateTime>() {
        Ok(at) => of_timestamp(at.to_zoned(TimeZone::UTC).ok()?.timestamp()),
        Err(_) => of_timestamp(strtime::parse(SPACED, text).ok()?.to_timestamp().ok()?),
    }
}

fn of_timestamp(at: Timestamp) -> Option<f64> {
    check_now(at.as_millisecond() as f64).ok()
}

/// A time in UTC, for display.
pub(crate) fn shown(ms: f64) -> String {
    Timestamp::from_millisecond(ms as i64).map_or_else(|_| format!("{ms} ms"), |at| at.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_instant_is_read_from_every_way_to_write_it() {
        let ways = [
            "10/Oct/2000:13:55:36 -0700",
            "10/Oct/2000:20:55:36.000 +0000",
            "971211336",
            "971211336.000",
            "971211336000",
            "971211336000000",
            "971211336000000000",
            "2000-10-10T20:55:36Z",
            "2000-10-10T13:55:36-07:00",
            "2000-10-10T13:55:36.000-0700",
            "2000-10-10 20:55:36",
            "2000-10-10 20:55:36,000",
            "2000-10-10 20:55:36 UTC",
            "2000-10-10 20:55:36.000 UTC",
            "2000-10-10 13:55:36 -0700",
            "2000-10-10 13:55:36.000 -0700",
            " 2000-10-10T20:55:36+00:00 ",
        ];
        let mut times = Times::default();
        for way in ways {
            assert_eq!(times.read(way.as_bytes()), Ok(971_211_336_000.0), "{way}");
            assert_eq!(times.read(way.as_bytes()), Ok(971_211_336_000.0), "{way}, again");
        }
    }

    #[test]
    fn fractions_are_kept_to_the_ms() {
        assert_eq!(parse(b"1700000000.123"), Some(1_700_000_000_123.0));
        assert_eq!(parse(b"2023-11-14T22:13:20.1239Z"), Some(1_700_000_000_123.0));
    }

    #[test]
    fn a_number_at_a_bound_has_the_smaller_unit() {
        assert_eq!(parse(b"99999999999"), Some(99_999_999_999_000.0));
        assert_eq!(parse(b"100000000000"), Some(100_000_000_000.0));
        assert_eq!(parse(b"100000000000000"), Some(100_000_000_000.0));
        assert_eq!(parse(b"100000000000000000"), Some(100_000_000_000.0));
    }

    #[test]
    fn text_that_is_not_a_time_is_rejected() {
        for text in
            ["", "-", "yesterday", "-5", "NaN", "inf", "1e300", "10/Foo/2000:13:55:36 -0700", "1969-12-31T23:59:59Z"]
        {
            assert!(Times::default().read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
