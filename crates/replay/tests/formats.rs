//! Every format is read to the same requests.

mod support;

use serde_json::{Value, json};
use std::io::Cursor;
use support::{run, run_all};
use tidegate_replay::{Options, Replay, Report};

const COMMON: &str = r#"10.0.0.1 - ann [14/Nov/2023:22:13:20 +0000] "GET /a HTTP/1.1" 200 3
10.0.0.1 - - [14/Nov/2023:22:13:20 +0000] "GET /b?x=\"y\" HTTP/1.1" 200 2
::ffff:10.0.0.1 - - [14/Nov/2023:23:13:20 +0100] "GET / HTTP/1.1" 304 -
10.0.0.2 - - [14/Nov/2023:22:13:21 +0000] "GET / HTTP/1.1" 200 1
"#;
const COMBINED: &str = r#"10.0.0.1 - ann lee [14/Nov/2023:22:13:20 +0000] "GET /a HTTP/1.1" 200 3 "https://a.example/" "Agent \"7\""
10.0.0.1 - - [14/Nov/2023:22:13:20 +0000] "GET /b HTTP/1.1" 200 2 "-" "Agent 8"
10.0.0.1 - - [14/Nov/2023:22:13:20 +0000] "" 400 0 "-" "-"
10.0.0.2 - - [14/Nov/2023:22:13:21 +0000] "GET / HTTP/1.1" 200 1 "-" "Agent 8"
"#;
const JSON: &str = r#"{"level":30,"time":1700000000000,"req":{"id":1,"remoteAddress":"10.0.0.1","headers":{"X-Api-Key":"a"}},"tags":["x"]}
{"req":{"remoteAddress":"::ffff:10.0.0.1"},"time":"2023-11-14T22:13:20.000Z"}
{"time":1700000000,"ip":"10.0.0.1"}
{"time":"2023-11-14T22:13:21Z","remote_addr":"10.0.0.2","x":null}
"#;
const CSV: &str = "Timestamp,note,Client-IP\r\n1700000000,\"a, \"\"b\"\"\nc\",10.0.0.1\r\n\
1700000000000,,10.0.0.1\r\n1700000000.000,,\"10.0.0.1\"\r\n2023-11-14 22:13:21,,10.0.0.2\r\n";

fn report(content: impl AsRef<[u8]>, more: Value) -> Report {
    run(content, more).unwrap().report
}

/// Two a second and client: the third of the first client is denied.
fn limit() -> Value {
    json!({ "limits": ["rate=2 period=1s"] })
}

fn begun(name: &str) -> Replay {
    let options: Options = serde_json::from_value(limit()).unwrap();
    let mut replay = Replay::new(&options, [1, 2], Box::new(Cursor::new(Vec::new()))).unwrap();
    replay.begin(name).unwrap();
    replay
}

fn assert_same(report: &Report, format: &str) {
    assert_eq!(report.read.formats[0].1, format);
    assert_eq!((report.read.requests, report.read.bad), (4, 0), "{report:?}");
    assert_eq!((report.granted, report.denied), (3, 1));
    assert_eq!((report.read.from, report.read.to), (1_700_000_000_000.0, 1_700_000_001_000.0));
    let limit = &report.limits[0];
    assert_eq!(limit.worst[0].key, "10.0.0.1");
    assert_eq!(limit.smallest_capacity, Some(3.0));
    assert!(report.read.whole_seconds);
}

#[test]
fn each_format_is_detected_from_its_lines() {
    for (log, format) in [(COMMON, "common"), (COMBINED, "common"), (JSON, "json"), (CSV, "csv")] {
        assert_same(&report(log, limit()), format);
        assert_same(&report(log, json!({ "limits": ["rate=2 period=1s"], "format": format })), format);
    }
}

#[test]
fn a_file_is_the_same_in_chunks_of_any_size() {
    for log in [COMMON, COMBINED, JSON, CSV] {
        for size in [1, 7, 64] {
            let mut replay = begun("the.log");
            log.as_bytes().chunks(size).for_each(|chunk| replay.push(chunk).unwrap());
            assert_eq!(replay.finish().unwrap().report, report(log, limit()));
        }
    }
}

#[test]
fn files_of_different_formats_are_read_in_sequence() {
    let logs = [("one.log", COMMON.as_bytes()), ("two.csv", CSV.as_bytes())];
    let report = run_all(&logs, limit()).unwrap().report;
    assert_eq!(report.read.requests, 8);
    assert_eq!(report.read.formats.iter().map(|(_, format)| format.as_str()).collect::<Vec<_>>(), ["common", "csv"]);
    // The second file begins a second before the first one's end.
    assert_eq!((report.read.out_of_order, report.read.farthest_back), (3, 1000.0));
}

#[test]
fn a_key_is_any_field_or_several_and_a_cost_is_a_column() {
    let by =
        |key: Value, log: &str| report(log, json!({ "limits": ["rate=2 period=1s"], "key": key })).limits[0].clone();
    assert_eq!(by(json!(["method"]), COMMON).worst[0].key, "GET");
    assert_eq!(by(json!(["path", "ip"]), COMMON).denied, 0);
    assert_eq!(by(json!([]), COMMON).denied, 1);
    assert_eq!(by(json!(["user-agent"]), &COMBINED[COMBINED.find('\n').unwrap() + 1..]).key, ["user-agent"]);
    let tuples = by(json!(["timestamp", "ip"]), CSV);
    assert_eq!((tuples.key.len(), tuples.denied), (2, 0));
    let joined = "time,a,b\n1700000000,x,yz\n1700000000,x,yz\n1700000000,xy,z\n";
    assert_eq!(by(json!(["a", "b"]), joined).denied, 0);

    let log = "time,key,cost\n1700000000,a,2.5\n1700000000,a,0\n1700000000,b,3\n1700000000,a,-1\n1700000000,a,x\n";
    let outcome = report(log, json!({ "limits": ["rate=2.75 period=1s"], "key": ["key"], "cost": "cost" }));
    assert_eq!((outcome.tokens, outcome.tokens_granted, outcome.read.requests, outcome.read.bad), (5.5, 2.5, 3, 2));
    assert_eq!(outcome.never, 1);
    assert_eq!(outcome.limits[0].smallest_capacity, Some(3.0));
    let why: Vec<&str> = outcome.read.first_bad.iter().map(|bad| bad.why.as_str()).collect();
    let rule = "`count` must be a finite number of tokens from 0 to 1099511627776; got -1";
    assert_eq!(why, [rule, "not a number of tokens: \"x\""]);
}

#[test]
fn a_field_in_json_is_found_by_its_path_in_any_case() {
    let outcome = report(JSON, json!({ "limits": ["rate=2 period=1s"], "key": ["req.headers.x-api-key"] }));
    assert_eq!((outcome.read.requests, outcome.read.bad), (1, 3));
    assert_eq!(outcome.read.first_bad[0].line, 2);
    assert_eq!(outcome.read.first_bad[0].why, "no field `req.headers.x-api-key`");
}

#[test]
fn every_json_value_but_an_object_is_a_key_and_a_list_of_texts_is_read_as_a_repeated_header() {
    for (value, key) in [
        ("\"ann\"", "ann"),
        (r#""a\u0062c""#, "abc"),
        ("true", "true"),
        ("false", "false"),
        ("7", "7"),
        ("-7", "-7"),
        ("2.5", "2.5"),
        ("3.0", "3"),
        ("[\"ann\"]", "ann"),
        ("[\"a\",\"b\"]", "a, b"),
    ] {
        let line = format!("{{\"time\":1700000000,\"a\":{{\"x\":[1],\"b\":{{\"x\":1,\"key\":{value}}}}}}}\n");
        let outcome = report(line.repeat(2), json!({ "limits": ["rate=1 period=1s"], "key": ["a.b.key"] }));
        assert_eq!(outcome.limits[0].worst[0].key, key);
    }
    for value in ["[]", "[1]", "[[\"a\"]]", "{}", "null"] {
        let lines = [value, "\"a\"", value].map(|value| format!("{{\"time\":1700000000,\"key\":{value}}}\n"));
        let outcome = report(lines.concat(), json!({ "limits": ["rate=1 period=1s"], "key": ["key"] }));
        assert_eq!((outcome.read.requests, outcome.read.bad), (1, 2), "{value}");
    }
}

#[test]
fn a_line_whose_time_is_not_a_time_is_bad() {
    let outcome = report("time,ip\n1700000000,a\nyesterday,a\n", limit());
    assert_eq!(outcome.read.first_bad[0].why, "not a time: \"yesterday\"");
}

#[test]
fn bad_lines_are_counted_and_the_first_are_shown() {
    let mut log = COMMON.to_owned();
    for i in 0..10 {
        log.push_str(&format!("what is this {i}\u{7}\n\n"));
    }
    let outcome = report(log + COMMON, limit());
    assert_eq!((outcome.read.requests, outcome.read.bad, outcome.read.lines), (8, 10, 18));
    assert_eq!(outcome.read.first_bad.len(), 5);
    assert_eq!(
        (outcome.read.first_bad[1].line, outcome.read.first_bad[1].text.as_str()),
        (7, "what is this 1\u{fffd}")
    );
}

#[test]
fn a_row_of_csv_may_have_long_fields_and_many_of_them() {
    let (names, values) = ((0..5000).map(|i| format!("c{i},")).collect::<String>(), ",".repeat(5000));
    let log = format!("time,{names}note,ip\n1700000000,{values}\"{}\",10.0.0.1\n", "x".repeat(100_000));
    let outcome = report(log, limit());
    assert_eq!((outcome.read.requests, outcome.read.bad), (1, 0), "{:?}", outcome.read.first_bad);
}

#[test]
fn a_row_of_csv_has_at_most_65536_columns_and_as_many_bytes_as_a_line() {
    let row = |columns: usize| format!("1700000000{}\n", ",".repeat(columns - 1));
    let lines = |bytes: usize| format!("1700000000,\"{}\"\n", "x\n".repeat(bytes / 2));
    let log = ["time,ip\n1700000000,a\n", &row(65_536), &row(65_537), &lines(1_000_000), &lines(1_100_000)].concat();
    let why: Vec<_> = report(log, limit()).read.first_bad.into_iter().map(|bad| bad.why).collect();
    let (key, long) = ("a key of 1000000 bytes; a limiter takes 1024", "a row that is too long: is a quote missing?");
    assert_eq!(why[..4], ["65536 columns, not 2", "more than 65536 columns", key, long]);
}

#[test]
fn a_row_with_a_line_that_is_too_long_ends_there_and_later_rows_are_read() {
    let long = "x".repeat(2 << 20);
    let text = format!("time,ip,note\n0,a,\n1,b,\"one\n{long}\"\n2,c,\n3,d,\n");
    let mut replay = begun("access.csv");
    for chunk in text.as_bytes().chunks(1 << 16) {
        replay.push(chunk).unwrap();
    }
    let read = replay.finish().unwrap().report.read;
    assert_eq!((read.requests, read.bad), (3, 1), "{:?}", read.first_bad);
}

#[test]
fn an_unclosed_quote_loses_its_row_in_bounded_memory() {
    let row = "1700000000,x,10.0.0.1\n";
    let log = format!("time,note,ip\n{row}1700000000,\"x,10.0.0.1\n{}", row.repeat(200_000));
    let outcome = report(log, limit());
    assert_eq!(outcome.read.first_bad[0].why, "a row that is too long: is a quote missing?");
    assert!(outcome.read.requests > 100_000, "{}", outcome.read.requests);
}

#[test]
fn a_byte_order_mark_is_not_part_of_the_first_line() {
    for (content, format) in [(COMMON, "common"), (JSON, "json"), (CSV, "csv")] {
        assert_same(&report(format!("\u{feff}{content}"), limit()), format);
    }
}

#[test]
fn a_known_format_that_is_not_read_has_an_error_with_the_command_that_converts_it() {
    let utf_16: Vec<u8> = std::iter::once(0xfeff).chain(COMMON.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    for (content, remedy) in [
        (utf_16, "iconv -f UTF-16 -t UTF-8"),
        (b"\x28\xb5\x2f\xfd\x24\x60\n".to_vec(), "zstd -dc"),
        (b"BZh91AY&SY\n".to_vec(), "bzip2 -dc"),
        (b"\xfd7zXZ\0\0\x04\n".to_vec(), "xz -dc"),
        (b"PK\x03\x04\x14\0\n".to_vec(), "unzip -p"),
        (b"#Version: 1.0\n#Fields: date time c-ip\n2023-11-14\t22:13:20\t10.0.0.1\n".to_vec(), "awk 'BEGIN"),
        (b"#Software: Microsoft Internet Information Services 10.0\n#Fields: date time c-ip\n".to_vec(), "awk '"),
        (b"https 2023-11-14T22:13:20.1Z app/a/1 10.0.0.1:4711 10.0.0.9:80 0.1\n".to_vec(), "print $2"),
        (b"h2 2023-11-14T22:13:20.1Z app/a/1 10.0.0.1:4711 10.0.0.9:80 0.1\n".to_vec(), "print $2"),
        (
            b"Nov 14 22:13:20 lb haproxy[7]: 10.0.0.1:4711 [14/Nov/2023:22:13:20.655] in app/a 1/0/3/6/9 200\n"
                .to_vec(),
            "+0000",
        ),
        (b"10.0.0.1:4711 [14/Nov/2023:22:13:20.655] in app/a 1/0/3/6/9 200 2 - -\n".to_vec(), "HAProxy"),
        (
            b"[2023-11-14T22:13:20.310Z] \"GET / HTTP/2\" 204 - 1 0 2 1 \"10.0.0.1\" \"x\" \"y\" \"z\" \"-\"\n"
                .to_vec(),
            "Envoy",
        ),
        (b"[{\"time\":0,\"ip\":\"a\"},\n{\"time\":1,\"ip\":\"a\"}]\n".to_vec(), "jq -c '.[]'"),
        (b"{\n  \"time\": 0\n}\n".to_vec(), "jq -c ."),
        (b"[\n  {\n    \"time\": 0\n  }\n]\n".to_vec(), "jq -c '.[]'"),
    ] {
        let error = run(content, limit()).unwrap_err().to_string();
        assert!(error.contains(remedy), "{error}");
    }
}

#[test]
fn a_file_whose_lines_end_with_carriage_returns_alone_has_an_error_with_the_command_that_converts_it() {
    let expected = "no known format: it is a log whose lines end with carriage returns alone; convert it first: \
        tr '\\r' '\\n' < <file> | tidegate-replay -";
    let common = "192.0.2.1 - - [14/Nov/2025:09:30:00 +0000] \"GET / HTTP/1.1\" 200 1\r";
    let json = "{\"time\":0,\"ip\":\"192.0.2.1\"}\r";
    for content in
        [common.repeat(2), common.repeat(20_000), json.repeat(2), format!("time,ip\r{}", "0,192.0.2.1\r".repeat(2))]
    {
        let error = run(&content, limit()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    for content in
        [common.into(), json.into(), format!("{common}\n").repeat(2), "time,ip,a\n0,192.0.2.1,\"a\rb\"\r".into()]
    {
        assert!(report(&content, limit()).read.requests > 0, "{content:?}");
    }
}

#[test]
fn a_file_of_unknown_format_is_shown_with_the_formats_tried() {
    let error = run("\nhello world\n1,2\n", limit()).unwrap_err().to_string();
    for part in ["has no known format", "hello world", "json: not a JSON object", "common: not `host", "csv: no column"]
    {
        assert!(error.contains(part), "{error}");
    }
    let error = run("[Tue Nov 14 22:13:20 2023] [error] of Apache\n", limit()).unwrap_err().to_string();
    assert!(error.contains("has no known format") && !error.contains("Envoy"), "{error}");
    let error = run("{\"when\":1}\n", limit()).unwrap_err().to_string();
    assert!(error.contains("json: no field `time` (or timestamp, "), "{error}");
    assert!(error.ends_with("\n--time, --key and --cost name other fields"), "{error}");
    assert_eq!(run("", limit()).unwrap_err().to_string(), "there is nothing to replay: no lines");
}

#[test]
fn any_number_of_lines_before_the_first_request_are_bad_lines() {
    let outcome = report("a line of a banner\n".repeat(500) + COMMON, limit());
    assert_eq!((outcome.read.requests, outcome.read.bad, outcome.denied), (4, 500, 1));
}

#[test]
fn a_first_line_that_is_long_does_not_hide_the_format() {
    let long =
        |bytes: usize| format!("{{\"note\":\"{}\",\"time\":1700000000,\"ip\":\"10.0.0.9\"}}\n", "x".repeat(bytes));
    for (bytes, requests, bad) in [(400_000, 5, 0), (1_000_000, 5, 0), (3_000_000, 4, 1)] {
        let log = long(bytes) + JSON;
        for size in [4096, 1 << 18, log.len()] {
            let mut replay = begun("the.log");
            log.as_bytes().chunks(size).for_each(|chunk| replay.push(chunk).unwrap());
            let read = replay.finish().unwrap().report.read;
            // A line that arrives whole is read however long it is.
            let (requests, bad) = if size == log.len() { (5, 0) } else { (requests, bad) };
            assert_eq!((read.requests, read.bad, read.lines), (requests, bad, 5), "{bytes} bytes in chunks of {size}");
        }
    }
    let error = run("x".repeat(3_000_000), limit()).unwrap_err().to_string();
    assert!(
        error.contains("none of 1 lines could be used. The first: the.log:1: longer than 1048576 bytes"),
        "{error}"
    );
}

#[test]
fn the_format_is_detected_in_a_chunk_after_a_line_that_is_too_long_and_a_banner() {
    let mut replay = begun("the.log");
    for chunk in ["x".repeat(2_000_000), "x".repeat(300_000) + "\na banner\n", JSON.to_owned()] {
        replay.push(chunk.as_bytes()).unwrap();
    }
    let read = replay.finish().unwrap().report.read;
    assert_eq!((read.requests, read.bad, read.lines), (4, 2, 6));
}

#[test]
fn empty_lines_are_not_requests_and_take_no_memory() {
    let mut replay = begun("empty.log");
    for _ in 0..100 {
        replay.push(&[b'\n'; 100_000]).unwrap();
    }
    replay.push(CSV.as_bytes()).unwrap();
    assert_same(&replay.finish().unwrap().report, "csv");
}

#[test]
fn a_short_file_is_read_when_it_ends_and_a_long_one_as_it_arrives() {
    let mut replay = begun("short.log");
    replay.push(JSON.as_bytes()).unwrap();
    assert_eq!(replay.requests(), 0);
    replay.end().unwrap();
    assert_eq!(replay.requests(), 4);
    replay.begin("long.csv").unwrap();
    replay.push(format!("time,ip\n{}", "1700000000,10.0.0.1\n".repeat(20_000)).as_bytes()).unwrap();
    assert_eq!(replay.requests(), 20_004);
}

#[test]
fn the_number_of_a_bad_line_counts_empty_lines_before_the_format_is_detected() {
    let mut replay = begun("the.csv");
    replay.push(&[b'\n'; 300_000]).unwrap();
    replay.push(b"time,ip\nyesterday,a\n1700000000,a\n").unwrap();
    assert_eq!(replay.finish().unwrap().report.read.first_bad[0].line, 300_002);
}

#[test]
fn times_with_fractions_are_not_whole_seconds() {
    for (log, whole) in [("time,ip\n1700000000.5,a\n1700000001,a\n", false), ("time,ip\n1700000001,a\n", true)] {
        assert_eq!(report(log, limit()).read.whole_seconds, whole);
    }
}

#[test]
fn a_key_that_is_longer_than_a_limiter_takes_is_a_bad_line() {
    let log = format!("time,ip\n1700000000,{}\n1700000000,{}\n", "a".repeat(1024), "a".repeat(1025));
    let outcome = report(log, limit());
    assert_eq!((outcome.read.requests, outcome.read.bad), (1, 1));
    assert_eq!(outcome.read.first_bad[0].why, "a key of 1025 bytes; a limiter takes 1024");
}

#[test]
fn a_failing_spool_ends_the_replay_with_its_message() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("no space in the folder"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    impl std::io::Read for Full {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Ok(0)
        }
    }
    impl std::io::Seek for Full {
        fn seek(&mut self, _: std::io::SeekFrom) -> std::io::Result<u64> {
            Ok(0)
        }
    }
    let options: Options = serde_json::from_value(limit()).unwrap();
    let mut replay = Replay::new(&options, [1, 2], Box::new(Full)).unwrap();
    replay.begin("the.log").unwrap();
    replay.push(JSON.as_bytes()).unwrap();
    assert_eq!(replay.finish().unwrap_err().to_string(), "no space in the folder");
}

#[test]
fn a_document_may_name_any_number_of_fields_and_a_line_may_lack_most_of_them() {
    let rule = |at: u32| {
        json!({ "name": format!("r{at}"), "limit_keys": ["ip:address"], "match": { format!("header:h{at}"): "1" },
            "algorithm": "token_bucket", "algorithm_config": { "rate": 1, "period": "1s" } })
    };
    let policy = json!({ "rules": (0..90).map(rule).collect::<Vec<_>>() });
    let line = |at: u32| format!(r#"{{"time":1700000000,"ip":"10.0.0.1","H{at}":1}}"#) + "\n";
    let log: String = (0..90).chain([0, 70, 89, 100]).map(line).collect();
    let report = report(log, json!({ "policy": policy.to_string() }));
    assert_eq!((report.read.requests, report.read.bad, report.denied), (94, 0, 3), "{report:?}");
}
