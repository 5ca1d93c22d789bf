//! A limit in one line, `rate=10 period=1s capacity=20`, and the numbers with units of the command line.

use crate::error::Error;
use tidegate_core::{Config, FIRST_REQUEST, Kind, NAME_EXPECTS, is_name};
use tidegate_policy::duration_ms;

const FIELDS: &str = "name, kind, rate, period, capacity, maxReserved and start";
const UNITS: [(&str, f64); 7] =
    [("ms", 1.0), ("s", 1e3), ("min", 6e4), ("m", 6e4), ("h", 3.6e6), ("d", 8.64e7), ("w", 6.048e8)];

/// A limit's name and its numbers, not yet checked.
pub(crate) fn limit(text: &str, number: usize) -> Result<(String, Config), Error> {
    let wrong = |what: String| Error(format!("limit {text:?}: {what}"));
    let mut name = if number == 0 { "limit".to_owned() } else { format!("limit{}", number + 1) };
    let mut config = Config::new(Kind::TokenBucket);
    let mut seen = Vec::new();
    for word in text.split([' ', ',']).filter(|word| !word.is_empty()) {
        let Some((field, value)) = word.split_once('=') else {
            return Err(wrong(format!("{word:?} is not field=value; the fields are {FIELDS}")));
        };
        if seen.contains(&field) {
            return Err(wrong(format!("`{field}` is given twice")));
        }
        seen.push(field);
        let amount = || {
            let number = value.parse::<f64>().ok().filter(|number| number.is_finite());
            number.ok_or_else(|| wrong(format!("`{field}` must be a number; got {value:?}")))
        };
        let start = || {
            duration(value).ok_or_else(|| {
                wrong(format!("`start` must be first_request, or a time such as 500ms, 1s or 15m; got {value:?}"))
            })
        };
        match field {
            "name" if is_name(value) => name = value.to_owned(),
            "name" => return Err(wrong(format!("`name` must be {NAME_EXPECTS}; got {value:?}"))),
            "kind" => {
                config.kind = match value {
                    "bucket" | "token_bucket" => Kind::TokenBucket,
                    "window" | "fixed_window" => Kind::FixedWindow,
                    _ => return Err(wrong(format!("`kind` must be token_bucket or fixed_window; got {value:?}"))),
                }
            }
            "rate" => config.rate = amount()?,
            "period" => config.period = period(value).map_err(wrong)?,
            "capacity" => config.capacity = Some(amount()?),
            "maxReserved" => config.max_reserved = Some(amount()?),
            "start" if value == "first_request" => config.start = Some(FIRST_REQUEST),
            "start" => config.start = Some(start()?),
            _ => return Err(wrong(format!("there is no field {field:?}; there are {FIELDS}"))),
        }
    }
    for (field, value, example) in [("rate", config.rate, "10"), ("period", config.period, "1m")] {
        if value.is_nan() {
            return Err(wrong(format!("`{field}` is missing: write {field}={example}")));
        }
    }
    if config.kind == Kind::TokenBucket && config.start.is_some() {
        return Err(wrong("`start` requires a fixed window: write kind=fixed_window".to_owned()));
    }
    Ok((name, config))
}

/// The ms of a period. A number without a unit is refused below a second: 60 is meant as seconds, and 60 ms would look as if
/// it worked.
pub(crate) fn period(text: &str) -> Result<f64, String> {
    if text.trim().parse::<f64>().is_ok_and(|ms| (1.0..1000.0).contains(&ms)) {
        return Err(format!("`period` {text} would be {text} ms: write the unit, as in 15s, 15m or 15ms"));
    }
    duration(text).ok_or_else(|| format!("`period` must be a time such as 500ms, 1s or 15m; got {text:?}"))
}

/// A duration in ms, from `500`, `500ms`, `1.5s`, `1m`, `2h`, `1d` or `1w`.
fn duration(text: &str) -> Option<f64> {
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = if unit.is_empty() { 1.0 } else { UNITS.iter().find(|(name, _)| *name == unit)?.1 };
    Some(duration_ms(number.trim().parse().ok()?, factor))
}

/// A share from 0 to 1, from `0.1%` or `0.001`.
pub(crate) fn share(text: &str) -> Result<f64, Error> {
    let share = match text.trim().strip_suffix('%') {
        // By its digits: 0.7 / 100 is less than 0.007. A number with its own exponent is divided.
        Some(percent) => {
            format!("{}e-2", percent.trim()).parse().or_else(|_| Ok(percent.trim().parse::<f64>()? / 100.0))
        }
        None => text.trim().parse::<f64>(),
    };
    share
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| Error(format!("the budget must be a share such as 0.1% or 0.001, from 0 to 1; got {text:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_begin_at_the_first_request_where_start_is_first_request() {
        let start =
            |text: &str| limit(&format!("kind=fixed_window rate=1 period=1s start={text}"), 0).map(|(_, c)| c.start);
        assert_eq!(start("first_request").unwrap(), Some(FIRST_REQUEST));
        assert_eq!(start("30s").unwrap(), Some(30_000.0));
        let message = start("first").unwrap_err().to_string();
        assert!(
            message.ends_with("`start` must be first_request, or a time such as 500ms, 1s or 15m; got \"first\""),
            "{message}"
        );
    }

    #[test]
    fn a_limit_is_read_from_a_line() {
        let (name, config) = limit("rate=10 period=1.5s,capacity=20 kind=window start=0 name=api", 0).unwrap();
        assert_eq!(name, "api");
        assert_eq!(config.kind, Kind::FixedWindow);
        assert_eq!((config.rate, config.period, config.capacity, config.start), (10.0, 1500.0, Some(20.0), Some(0.0)));
        assert_eq!(limit("rate=1 period=1m", 1).unwrap().0, "limit2");
        assert_eq!(limit("rate=1 period=1m maxReserved=5", 0).unwrap().1.max_reserved, Some(5.0));
    }

    #[test]
    fn the_error_of_a_limit_names_the_field_and_the_legal_values() {
        let message = |text| limit(text, 0).unwrap_err().to_string();
        assert!(message("rate=x").ends_with("`rate` must be a number; got \"x\""));
        assert!(message("period=1y").ends_with("`period` must be a time such as 500ms, 1s or 15m; got \"1y\""));
        assert!(message("rate").contains("is not field=value"));
        assert!(message("rate=inf period=1s").ends_with("`rate` must be a number; got \"inf\""));
        assert!(message("rate=1").ends_with("`period` is missing: write period=1m"));
        assert!(message("").ends_with("`rate` is missing: write rate=10"));
        assert!(message("rate=1 period=1m rate=2").ends_with("`rate` is given twice"));
        assert!(message("burst=3").contains("there is no field \"burst\""));
        assert!(
            message("rate=1 period=60").ends_with("`period` 60 would be 60 ms: write the unit, as in 15s, 15m or 15ms")
        );
        assert!(limit("rate=1 period=1000", 0).is_ok() && limit("rate=1 period=60ms", 0).is_ok());
        assert!(
            message("rate=1 period=1m start=0").ends_with("`start` requires a fixed window: write kind=fixed_window")
        );
    }

    #[test]
    fn shares_and_times_have_units() {
        assert_eq!(share("0.1%").unwrap(), 0.001);
        assert_eq!(share("0.7 %").unwrap(), 0.007);
        assert_eq!(share("7e-1%").unwrap(), 0.7 / 100.0);
        assert_eq!(share("0").unwrap(), 0.0);
        assert!(share("%").is_err());
        assert!(share("101%").is_err());
        assert!(share("-1").is_err());
        for (text, ms) in
            [("250", 250.0), ("250ms", 250.0), ("2m", 120_000.0), ("2min", 120_000.0), ("1d", 86_400_000.0)]
                .into_iter()
                .chain([("1w", 604_800_000.0), ("1.005s", 1005.0), ("0.07h", 252_000.0), ("0.5ms", 0.5)])
        {
            assert_eq!(duration(text), Some(ms));
        }
        assert_eq!(duration("soon"), None);
    }
}
