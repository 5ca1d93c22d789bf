//! Quotes in CSV.

mod support;

use serde_json::{Value, json};
use support::run;

fn limit() -> Value {
    json!({ "limits": ["rate=2 period=1s"] })
}

#[test]
fn a_quote_that_is_never_closed_loses_all_lines_from_where_it_opens() {
    let row = "1700000000,10.0.0.1\n";
    let log = format!("time,ip\n{}1700000000,\"10.0.0.1\n{}", row.repeat(9), row.repeat(90));
    let read = run(log, limit()).unwrap().report.read;
    assert_eq!((read.requests, read.bad, read.lines), (9, 91, 100));
    assert_eq!((read.first_bad[0].line, read.first_bad[0].why.as_str()), (11, "a quote is never closed"));
    let error = run(format!("time,ip\n1700000000,\"10.0.0.1\n{}", row.repeat(90)), limit()).unwrap_err();
    assert!(
        error.to_string().ends_with("none of 91 lines could be used. The first: the.log:2: a quote is never closed"),
        "{error}"
    );
}
