//! Replays files under ten requests a minute and client, natively, and prints how long it took.
//!
//! ```text
//! cargo run --release -p tidegate-replay --example measure -- access.log
//! ```

use serde_json::json;
use std::fs::File;
use std::io::Read;
use std::time::Instant;
use tidegate_replay::{Options, Replay};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options: Options = serde_json::from_value(json!({ "limits": ["rate=10 period=1m capacity=20"] }))?;
    let from = Instant::now();
    let mut replay = Replay::new(&options, [1, 2], Box::new(tempfile::tempfile()?))?;
    let mut chunk = vec![0; 1 << 18];
    for name in std::env::args().skip(1) {
        replay.begin(&name)?;
        let mut file = File::open(&name)?;
        loop {
            match file.read(&mut chunk)? {
                0 => break,
                count => replay.push(&chunk[..count])?,
            }
        }
    }
    let replayed = replay.finish()?;
    let seconds = from.elapsed().as_secs_f64();
    print!("{}", replayed.text);
    println!("\n{seconds:.2} s, {:.2} million requests a second", replayed.report.read.requests as f64 / seconds / 1e6);
    Ok(())
}
