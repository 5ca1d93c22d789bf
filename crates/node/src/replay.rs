//! The replay of a log, on a thread of its own: the caller's stays free, so that it can show progress and be interrupted.

use napi::bindgen_prelude::AsyncTask;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, Error, Result, Status, Task};
use napi_derive::napi;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tidegate_replay::Progress;

type OnProgress = ThreadsafeFunction<Vec<f64>, (), Vec<f64>, Status, false>;

/// A replay that is under way.
pub(crate) struct Replaying {
    options: String,
    progress: OnProgress,
}

impl Task for Replaying {
    type Output = String;
    type JsValue = String;

    fn compute(&mut self) -> Result<String> {
        let Replaying { options, progress } = self;
        let options = serde_json::from_str(options).map_err(|error| Error::from_reason(error.to_string()))?;
        let mut tell = |Progress { bytes, total, requests, read }| {
            let total = total.map_or(f64::NAN, |total| total as f64);
            let step = vec![bytes as f64, total, requests as f64, f64::from(u8::from(read))];
            progress.call(step, ThreadsafeFunctionCallMode::NonBlocking);
        };
        let replayed = catch_unwind(AssertUnwindSafe(|| tidegate_replay::replay(&options, &mut tell)));
        let replayed = replayed.map_err(|_| Error::from_reason("the replay failed; this is a defect of tidegate"))?;
        let replayed = replayed.map_err(|error| Error::from_reason(error.to_string()))?;
        serde_json::to_string(&replayed).map_err(|error| Error::from_reason(error.to_string()))
    }

    fn resolve(&mut self, _: Env, replayed: String) -> Result<String> {
        Ok(replayed)
    }
}

/// Replays a log. `options` is the JSON of [`tidegate_replay::Options`], the answer that of
/// [`tidegate_replay::Replayed`]. `progress` is called now and then with bytes, all bytes (NaN: unknown), requests, and
/// 1 behind the log's end.
#[napi]
#[must_use]
pub(crate) fn replay(options: String, progress: OnProgress) -> AsyncTask<Replaying> {
    AsyncTask::new(Replaying { options, progress })
}
