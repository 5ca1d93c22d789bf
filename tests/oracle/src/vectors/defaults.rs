use super::TODAY;
use crate::history::History;
use crate::key::units;
use crate::limit::Limit;

pub(crate) const ABOUT: &str = "The default start: xxh3_64(identity without shard) mod period. Keys are hashed in \
generalized UTF-8, in which a lone surrogate is three bytes. Strings here are ASCII; an escape from \\ud800 to \
\\udfff without its pair is a lone surrogate, which some JSON readers reject.";

pub(crate) fn vectors() -> Vec<String> {
    let mut keys: Vec<(String, Option<Vec<u16>>)> = vec![("no key".into(), None)];
    for text in [
        " ",
        "user:1",
        "user:2",
        "a/b",
        "__proto__",
        "constructor",
        "\u{0}",
        "line\nbreak",
        "\"quoted\\\"",
        "é",
        "e\u{301}",
        "日本語",
        "😀",
        "👩‍👩‍👧",
        "\u{feff}bom",
        "\u{ffff}",
        "\u{10ffff}",
        "İstanbul",
        " space ",
    ] {
        keys.push((format!("key {text:?}"), Some(units(text))));
    }
    keys.push(("a key of 200 bytes".into(), Some(units(&"k".repeat(200)))));
    keys.push(("a key of 1024 bytes".into(), Some(units(&"0123456789abcdef".repeat(64)))));
    for (name, key) in [
        ("a lone high surrogate", vec![0xd800]),
        ("another lone high surrogate", vec![0xdbff]),
        ("a lone low surrogate", vec![0xdc00]),
        ("a low before a high surrogate", vec![0xde00, 0xd83d]),
        ("a lone surrogate inside", vec![0x61, 0xd83d, 0x62]),
        ("the replacement character is another key", vec![0xfffd]),
    ] {
        keys.push((name.into(), Some(key)));
    }
    let mut out = Vec::new();
    for (name, key) in keys {
        for period in [1000.0, 86_400_000.0, 1_099_511_627_776.0] {
            let mut h =
                History::keyed(&format!("{name}, window of {period} ms"), key.clone(), Limit::window(5.0, period));
            h.takes(TODAY, &[(0.0, 5.0), (0.0, 1.0)]);
            h.around_retry(1.0);
            out.push(h.finish());
        }
    }
    let mut h = History::new("a bucket needs no start", Limit::bucket(5.0, 1000.0));
    h.take(TODAY, 5.0);
    out.push(h.finish());
    let mut h = History::new("all shards are on the one grid", Limit::window(9.0, 1000.0).shards(3.0));
    h.takes(TODAY, &[(0.0, 9.0), (0.0, 1.0)]);
    out.push(h.finish());
    for start in [0.0, -0.0] {
        let mut h = History::new(&format!("start {start:?} is a start"), Limit::window(5.0, 1000.0).start(start + 0.0));
        h.takes(0.0, &[(999.0, 5.0), (999.0, 1.0)]);
        out.push(h.finish());
        if start == 0.0 {
            break;
        }
    }
    out
}
