//! A plain Rust server with a limit for each client: `cargo run -p tidegate-example-rust` (PORT chooses the port).

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{StatusCode, header::RETRY_AFTER};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing::get};
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tidegate_core::{Config, Kind, Policy};
use tidegate_table::{Call, Limit, SharedTable};

/// A table that all threads share, and one limit on it.
struct Limits {
    table: SharedTable,
    api: Limit,
}

impl Limits {
    fn new() -> Result<Limits, tidegate_core::InputError> {
        // A burst of three, and one more every ten seconds.
        let api = Config { rate: 1.0, period: 10_000.0, capacity: Some(3.0), ..Config::new(Kind::TokenBucket) };
        // Random, so that a client cannot choose keys whose hashes collide.
        let secret = [RandomState::new().hash_one(0), RandomState::new().hash_one(1)];
        let table = SharedTable::new(100_000, secret);
        let api = Limit::new(table.secret(), "api", Policy::new(&api)?);
        Ok(Limits { table, api })
    }
}

/// Integer ms since the Unix epoch, the unit of every time in the library.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_millis() as f64)
}

/// The client of an address. One on IPv6 has a network of at least 64 bits, and could send from another address each time.
fn client_of(ip: IpAddr) -> String {
    match ip.to_canonical() {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("{}/56", Ipv6Addr::from_bits(v6.to_bits() & (!0 << 72))),
    }
}

/// A layer in front of every route: calls the next one, or returns 429 with `Retry-After`.
async fn limited(
    State(limits): State<Arc<Limits>>,
    ConnectInfo(client): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    let now = now();
    let key = client_of(client.ip());
    let decision = limits.table.decide(&limits.api, Some(key.as_bytes()), Call::at(now));
    if decision.ok {
        return next.run(request).await;
    }
    // Rounded up, so that a client that waits that many seconds is granted; absent where no wait helps.
    let retry_after = decision.retry_at.map(|at| [(RETRY_AFTER, ((at - now) / 1000.0).ceil().max(1.0).to_string())]);
    (StatusCode::TOO_MANY_REQUESTS, retry_after, "slow down\n").into_response()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limits = Arc::new(Limits::new()?);
    let app = Router::new().route("/", get(|| async { "hello\n" })).layer(from_fn_with_state(limits, limited));
    let port = std::env::var("PORT").map_or(Ok(3000), |port| port.parse())?;
    let listener = tokio::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], port))).await?;
    println!("http://{}", listener.local_addr()?);
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}
