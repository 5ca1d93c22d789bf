//! Writes an access log such as a busy server has, to stdout.
//!
//! ```text
//! cargo run --release -p tidegate-replay --example generate -- 5000000 combined > access.log
//! ```
//!
//! The formats are `common`, `combined`, `json` and `csv`. A tenth of the requests is of ten clients, the others are of
//! 100,000; the clock goes on by 2 ms a request on average. The same arguments write the same log.

use jiff::Timestamp;
use std::io::{self, BufWriter, Write};

/// SplitMix64: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % bound
    }
}

const PATHS: [&str; 4] = ["/", "/api/messages", "/api/messages/17/replies?page=2", "/assets/app.4f9c2b.js"];
const AGENT: &str =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let requests: u64 = words.next().as_deref().unwrap_or("1000000").parse()?;
    let format = words.next().unwrap_or_else(|| "combined".to_owned());
    let mut out = BufWriter::with_capacity(1 << 18, io::stdout().lock());
    let mut random = Random(1);
    let mut now = 1_760_000_000_000_i64;
    let (mut second, mut clock) = (0, String::new());
    if format == "csv" {
        writeln!(out, "time,ip,user,tokens,path")?;
    }
    for _ in 0..requests {
        now += random.below(5) as i64;
        let client = if random.below(10) == 0 { random.below(10) } else { 10 + random.below(100_000) };
        let ip = format!("10.{}.{}.{}", client >> 16, client >> 8 & 255, client & 255);
        let path = PATHS[random.below(4) as usize];
        let bytes = 200 + random.below(20_000);
        if now / 1000 != second {
            second = now / 1000;
            clock = Timestamp::from_second(second)?.strftime("%d/%b/%Y:%H:%M:%S +0000").to_string();
        }
        match format.as_str() {
            "common" => writeln!(out, "{ip} - - [{clock}] \"GET {path} HTTP/1.1\" 200 {bytes}")?,
            "combined" => {
                writeln!(
                    out,
                    "{ip} - - [{clock}] \"GET {path} HTTP/1.1\" 200 {bytes} \"https://example.com/\" \"{AGENT}\""
                )?;
            }
            "json" => writeln!(
                out,
                "{{\"level\":30,\"time\":{now},\"req\":{{\"method\":\"GET\",\"url\":\"{path}\",\"remoteAddress\":\"{ip}\"}},\
                 \"user\":\"user {client}\",\"tokens\":{},\"msg\":\"request completed\"}}",
                bytes % 7 + 1
            )?,
            "csv" => writeln!(out, "{now},{ip},user {client},{},{path}", bytes % 7 + 1)?,
            other => return Err(format!("no format {other}; there are common, combined, json and csv").into()),
        }
    }
    out.flush()?;
    Ok(())
}
