//! The lines of access logs in the common and combined formats, and the text that other programs write before them.

mod support;

use serde_json::json;
use support::run;

const LINE: &str = r#"10.0.0.1 - ann lee [14/Nov/2023:22:13:20 +0000] "GET / HTTP/1.1" 200 312"#;

/// The key of two such lines, the second of which is denied.
fn by(key: &str, line: &str) -> String {
    let log = format!("{line}\n").repeat(2);
    run(log, json!({ "limits": ["rate=1 period=1s"], "key": [key] })).unwrap().report.limits[0].worst[0].key.clone()
}

#[test]
fn every_field_of_the_common_and_combined_formats_is_a_key() {
    let common = r#"10.0.0.1 id ann lee [14/Nov/2023:22:13:20 +0000] "GET /a?x=\"y\" HTTP/1.1" 200 312"#;
    let combined = format!(r#"{common} "https://a.example/ \"b\"" "Agent 7""#);
    for (key, value) in [
        ("host", "10.0.0.1"),
        ("ip", "10.0.0.1"),
        ("remote_addr", "10.0.0.1"),
        ("ident", "id"),
        ("user", "ann lee"),
        ("remote_user", "ann lee"),
        ("time", "14/Nov/2023:22:13:20 +0000"),
        ("request", r#"GET /a?x=\"y\" HTTP/1.1"#),
        ("status", "200"),
        ("bytes", "312"),
        ("method", "GET"),
        ("path", r#"/a?x=\"y\""#),
        ("protocol", "HTTP/1.1"),
    ] {
        assert_eq!((by(key, common), by(key, &combined)), (value.to_owned(), value.to_owned()), "{key}");
    }
    assert_eq!(by("referer", &combined), r#"https://a.example/ \"b\""#);
    assert_eq!(by("user_agent", &combined), "Agent 7");
}

#[test]
fn access_logs_have_the_headers_referer_and_user_agent_and_their_host_is_the_client() {
    let replayed = |header: &str| {
        let rule = json!({ "name": "a", "limit_keys": [format!("header:{header}")], "algorithm": "token_bucket",
                           "algorithm_config": { "rate": 1, "period": "1h" } });
        let log = format!("{LINE} \"https://a.example/\" \"Agent 7\"\n").repeat(2);
        let replayed = run(log, json!({ "policy": json!({ "rules": [rule] }).to_string() }));
        replayed.map(|replayed| replayed.report.limits[0].worst[0].key.clone()).map_err(|error| error.to_string())
    };
    assert_eq!(replayed("user-agent").unwrap(), "Agent 7");
    assert_eq!(replayed("Referer").unwrap(), "https://a.example/");
    let why = replayed("host").unwrap_err();
    assert!(why.contains("common: no field `host` (or http_host, headers.host, req.headers.host, request.headers.host); there are referer, user_agent"), "{why}");
}

#[test]
fn the_client_is_found_after_the_name_of_the_server() {
    for server in ["a.example:443 ", "a.example ", "*:443 ", "- "] {
        let line = format!("{server}{LINE}");
        assert_eq!((by("ip", &line), by("user", &line)), ("10.0.0.1".to_owned(), "ann lee".to_owned()), "{line}");
    }
    let v6 = r#"a.example:443 2001:db8::1 - - [14/Nov/2023:22:13:20 +0000] "GET / HTTP/1.1" 200 312"#;
    assert_eq!(by("ip", v6), "2001:db8::/56");
}

#[test]
fn the_clients_address_is_its_network_by_each_name_of_its_field() {
    let v6 = r#"2001:db8:0:1234::1 - - [14/Nov/2023:22:13:20 +0000] "GET / HTTP/1.1" 200 312"#;
    assert_eq!(
        (by("host", v6), by("remote_addr", v6)),
        ("2001:db8:0:1200::/56".to_owned(), "2001:db8:0:1200::/56".to_owned())
    );
    for name in ["ip", "remote_addr", "Client-IP", "request.remote_ip"] {
        let field = name.split('.').rev().fold(json!("::ffff:10.0.0.1"), |value, name| json!({ name: value }));
        let mut line = json!({ "time": 1_700_000_000 });
        line.as_object_mut().unwrap().extend(field.as_object().unwrap().clone());
        assert_eq!(by(name, &line.to_string()), "10.0.0.1", "{name}");
    }
    // Any other field is what it is.
    assert_eq!(by("user", r#"{"time":1700000000,"user":"a::b"}"#), "a::b");
}

#[test]
fn of_forwarded_addresses_in_place_of_the_host_the_first_is_the_client() {
    for proxies in ["", " 10.1.1.1,", " 10.1.1.1, unknown,"] {
        let line = format!("203.0.113.9,{proxies} {LINE}");
        assert_eq!((by("ip", &line), by("user", &line)), ("203.0.113.9".to_owned(), "ann lee".to_owned()), "{line}");
    }
}

#[test]
fn the_client_is_found_after_the_prefix_of_a_log_collector() {
    for collector in [
        "Nov 14 22:13:20 web nginx: ",
        "Nov 14 22:13:20 192.0.2.5 nginx[7]: ",
        "<190>1 2023-11-14T22:13:20Z web nginx - - - ",
        "2023-11-14T22:13:20.123456789Z stdout F ",
        "web-1  | ",
        "[pod/web-1/nginx] ",
    ] {
        let line = format!("{collector}{LINE}");
        assert_eq!((by("ip", &line), by("user", &line)), ("10.0.0.1".to_owned(), "ann lee".to_owned()), "{line}");
    }
    // A user name is the client's text, and no client.
    let named = r#"a.example - 10.0.0.9 - x [14/Nov/2023:22:13:20 +0000] "GET / HTTP/1.1" 200 312"#;
    assert_eq!(by("ip", named), "a.example");
}
