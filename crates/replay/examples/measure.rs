//! Replays files under ten requests a minute and client, and tells how long it took.
//!
//! ```text
//! cargo run --release -p tidegate-replay --example measure -- access.log
//! ```

use serde_json::json;
use std::time::Instant;
use tidegate_replay::{Options, replay};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let options: Options = serde_json::from_value(json!({
        "files": files,
        "limits": ["rate=10 period=1m capacity=20"],
    }))?;
    let from = Instant::now();
    let replayed = replay(&options, &mut |_| {})?;
    let seconds = from.elapsed().as_secs_f64();
    print!("{}", replayed.text);
    println!("\n{seconds:.2} s, {:.2} million requests a second", replayed.report.read.requests as f64 / seconds / 1e6);
    Ok(())
}
