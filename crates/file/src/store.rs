//! An open folder. Each call on it is one transaction.

use crate::error::FileError;
use crate::fork::forked;
use crate::options::Settings;
use crate::snapshot::Keeper;
use crate::transaction::{Fault, OWN_ROWS, Reading, Rows, Writing};
use heed::{Env, MdbError, WithoutTls};
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tidegate_core::{Decision, State};
use tidegate_table::{All, Call, Limit, Member, States, plan, plan_all};

/// How long a call waits for pages that a snapshot holds, or for a free reader slot.
const PATIENCE: Duration = Duration::from_secs(1);

/// States of a folder, and those that this process has dropped from it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// States held now.
    pub keys: u64,
    /// The most it may hold.
    pub max_keys: u64,
    /// States that this process evicted for room before they were full.
    pub evicted: u64,
    /// Full states dropped by this process; a dropped full state changes no decision.
    pub expired: u64,
    /// Size of the data file in bytes, free pages included. A snapshot takes at most as much again, twice while one is
    /// made.
    pub bytes: u64,
    /// The error of the last snapshot, if it failed.
    pub sync_error: Option<String>,
}

/// What opening a folder leads to.
pub(crate) struct Opened {
    pub(crate) env: Env<WithoutTls>,
    pub(crate) rows: Rows,
    pub(crate) settings: Settings,
    /// Held while the folder is open: a process that cannot lock it exclusively is not the first.
    pub(crate) owner: Arc<File>,
}

/// States in a folder, shared by all threads and processes that have it open. Made by [`open`](crate::open).
///
/// A call that writes blocks its thread while another thread or process writes and, with
/// [`SyncMode::Always`](crate::SyncMode::Always), until the disk has the write. In async code, make calls where a thread may
/// block, such as tokio's `spawn_blocking`.
pub struct FileStore {
    // In the order of their drops: the keeper uses the environment, and the lock is held until that is closed.
    keeper: Keeper,
    env: Env<WithoutTls>,
    rows: Rows,
    owner: Arc<File>,
    folder: PathBuf,
    settings: Settings,
    evicted: AtomicU64,
    expired: AtomicU64,
}

impl FileStore {
    pub(crate) fn new(folder: &Path, opened: Opened) -> FileStore {
        let Opened { env, rows, settings, owner } = opened;
        FileStore {
            keeper: Keeper::start(folder, &env, &owner, settings.sync),
            env,
            rows,
            owner,
            folder: folder.to_owned(),
            settings,
            evicted: AtomicU64::new(0),
            expired: AtomicU64::new(0),
        }
    }

    /// The secret that limits on this store hash under; the same in every process.
    #[must_use]
    pub fn secret(&self) -> [u64; 2] {
        self.settings.secret
    }

    pub(crate) fn settings(&self) -> Settings {
        self.settings
    }

    pub(crate) fn owner(&self) -> &File {
        &self.owner
    }

    fn fail(&self, fault: Fault) -> FileError {
        match fault {
            Fault::Row => FileError::corrupt(&self.folder, "a state is not what was written"),
            Fault::Engine(heed::Error::Mdb(MdbError::MapFull)) => FileError::new(
                &self.folder,
                "data.mdb is full: a reader or a snapshot has kept its pages for a second; end the process that is \
                 stuck, or set a larger `maxKeys`",
            ),
            Fault::State(error) => FileError::new(&self.folder, format!("nothing is written: {error}")),
            Fault::Engine(error) => FileError::engine(&self.folder, "a transaction failed", &error),
        }
    }

    fn refuse_fork(&self) -> Result<(), FileError> {
        if !forked() {
            return Ok(());
        }
        let what =
            "this process was forked from one that had it open; start it as a separate program, and open it there";
        Err(FileError::new(&self.folder, what))
    }

    /// Retries while pages or reader slots are held by other processes, or by processes that were killed.
    fn patiently<T>(&self, run: impl Fn() -> Result<T, Fault>) -> Result<T, FileError> {
        self.refuse_fork()?;
        let mut since = None;
        loop {
            match run() {
                Err(Fault::Engine(heed::Error::Mdb(MdbError::MapFull | MdbError::ReadersFull)))
                    if since.get_or_insert_with(Instant::now).elapsed() < PATIENCE =>
                {
                    let _ = self.env.clear_stale_readers();
                    sleep(Duration::from_micros(200));
                }
                other => return other.map_err(|fault| self.fail(fault)),
            }
        }
    }

    fn reading<T>(&self, run: impl Fn(&Reading<'_>) -> Result<T, Fault>) -> Result<T, FileError> {
        self.patiently(|| {
            let reading = Reading { rows: self.rows, txn: self.env.read_txn()? };
            run(&reading)
        })
    }

    fn writing<T>(&self, run: impl Fn(&mut Writing<'_>) -> Result<T, Fault>) -> Result<T, FileError> {
        self.patiently(|| {
            let mut writing = Writing {
                rows: self.rows,
                txn: self.env.write_txn()?,
                max_keys: u64::from(self.settings.max_keys.get()),
                evicted: 0,
                expired: 0,
            };
            // On an error the transaction is dropped without a commit, so nothing is written. LMDB writes no empty one.
            let result = run(&mut writing)?;
            writing.txn.commit()?;
            self.evicted.fetch_add(writing.evicted, Relaxed);
            self.expired.fetch_add(writing.expired, Relaxed);
            Ok(result)
        })
    }

    /// One call on one limit and key. A call that writes nothing (a denial, a check) waits for no other call.
    ///
    /// # Errors
    /// If the folder cannot be used; nothing is taken then.
    pub fn decide(&self, limit: &Limit, key: Option<&[u8]>, call: Call) -> Result<Decision, FileError> {
        let (decision, change) = self.reading(|states| plan(states, limit, key, &call))?;
        if change.is_none() {
            return Ok(decision);
        }
        // Another process may have written since, so the call is planned again inside the writing transaction.
        self.writing(|states| states.decide(limit, key, &call))
    }

    /// One independent call on each of many keys of one limit, in one transaction.
    ///
    /// # Errors
    /// If the folder cannot be used; nothing is taken then.
    pub fn decide_many(&self, limit: &Limit, keys: &[Option<&[u8]>], call: Call) -> Result<Vec<Decision>, FileError> {
        self.writing(|states| keys.iter().map(|key| states.decide(limit, *key, &call)).collect())
    }

    /// Takes from all members or from none; without `takes`, only decides. `now` is integer ms since the Unix epoch
    /// ([`check_now`](tidegate_core::check_now)).
    ///
    /// # Errors
    /// If the folder cannot be used; nothing is taken then.
    pub fn take_all(&self, members: &[Member], now: f64, takes: bool) -> Result<All, FileError> {
        let (all, changes) = self.reading(|states| plan_all(states, members, now))?;
        if !takes || changes.is_empty() {
            return Ok(all);
        }
        self.writing(|states| {
            let (all, changes) = plan_all(states, members, now)?;
            for change in &changes {
                states.write(change, now)?;
            }
            Ok(all)
        })
    }

    /// The state of the key at `now`, ms since the Unix epoch.
    ///
    /// # Errors
    /// If the folder cannot be used.
    pub fn value(&self, limit: &Limit, key: Option<&[u8]>, now: f64) -> Result<State, FileError> {
        let bucket = limit.bucket(key);
        let stored = self.reading(|states| states.read(limit.digest(key)))?;
        Ok(bucket.refill(stored.state(&bucket, now), now))
    }

    /// Removes the state: the key is full again.
    ///
    /// # Errors
    /// If the folder cannot be used.
    pub fn reset(&self, limit: &Limit, key: Option<&[u8]>) -> Result<(), FileError> {
        self.writing(|states| states.remove(limit.digest(key)))
    }

    /// Counts of the states held and dropped.
    ///
    /// # Errors
    /// If the folder cannot be used.
    pub fn stats(&self) -> Result<Stats, FileError> {
        let rows = self.reading(|states| Ok(self.rows.len(&states.txn)?))?;
        Ok(Stats {
            keys: rows.saturating_sub(OWN_ROWS),
            max_keys: u64::from(self.settings.max_keys.get()),
            evicted: self.evicted.load(Relaxed),
            expired: self.expired.load(Relaxed),
            bytes: self.env.info().map_size as u64,
            sync_error: self.keeper.error(),
        })
    }
}

/// Without the secret: logs contain it.
impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { max_keys, sync, .. } = &self.settings;
        let mut text = f.debug_struct("FileStore");
        text.field("folder", &self.folder).field("max_keys", max_keys).field("sync", sync).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporary::{NOW, Temporary, bucket};
    use crate::{Options, open};
    use std::io::{BufRead, BufReader};
    use std::num::NonZeroU32;
    use std::process::{Command, Stdio};
    use std::sync::Arc;

    const SMALL: Options = Options { max_keys: Some(NonZeroU32::MIN), sync: None };

    /// A reader keeps all later pages, so the file fills.
    #[test]
    fn a_call_waits_for_pages_that_a_reader_holds_before_it_fails() {
        let folder = Temporary::new();
        let store = folder.open_with(SMALL).expect("a store");
        let limit = bucket(&store, 1e9);
        let take = || store.decide(&limit, None, Call::at(NOW));
        take().expect("an answer");
        let reader = store.env.read_txn().expect("a reader");
        let (began, error) = loop {
            let began = Instant::now();
            if let Err(error) = take() {
                break (began, error.to_string());
            }
        };
        assert!(began.elapsed() >= PATIENCE.max(Duration::from_millis(500)));
        assert!(error.contains("data.mdb is full: a reader or a snapshot has kept its pages"), "{error}");
        drop(reader);
        take().expect("an answer, now that the pages are free");
    }

    #[test]
    fn a_call_waits_for_a_place_among_the_readers_before_it_fails() {
        let folder = Temporary::new();
        let store = folder.open_with(SMALL).expect("a store");
        let readers: Vec<_> = std::iter::from_fn(|| store.env.read_txn().ok()).collect();
        assert!(readers.len() >= 1000, "{} readers", readers.len());
        let began = Instant::now();
        let error = store.stats().expect_err("all places are taken").to_string();
        assert!(began.elapsed() >= PATIENCE.max(Duration::from_millis(500)), "{error}");
        drop(readers);
        store.stats().expect("counts, now that there are places");
    }

    #[test]
    fn a_call_that_writes_nothing_waits_for_no_writer() {
        let folder = Temporary::new();
        let store = folder.open_with(SMALL).expect("a store");
        let limit = bucket(&store, 1.0);
        assert!(store.decide(&limit, None, Call::at(NOW)).expect("an answer").ok);
        let writer = store.env.write_txn().expect("a writer");
        let (answered, answers) = std::sync::mpsc::channel();
        let (reader, of) = (Arc::clone(&store), limit.clone());
        std::thread::spawn(move || {
            let members = [None, Some(b"ann".as_slice())].map(|key| Member::new(&of, key, 1.0, false));
            let _ = answered.send(reader.decide(&of, None, Call::at(NOW)).expect("a denial").ok);
            let _ = answered.send(reader.take_all(&members, NOW, true).expect("a denial").ok);
            let _ = answered.send(reader.take_all(&members[1..], NOW, false).expect("a check").ok);
        });
        let answer = || answers.recv_timeout(Duration::from_secs(30)).expect("an answer while there is a writer");
        assert_eq!([answer(), answer(), answer()], [false, false, true]);
        drop(writer);
    }

    #[test]
    fn a_reader_that_was_killed_holds_no_pages() {
        if let Some(folder) = std::env::var_os("TIDEGATE_READ") {
            // In another process.
            let store = open(Path::new(&folder), Options::default()).expect("a store");
            let _reader = store.env.read_txn().expect("a reader");
            println!("it reads");
            return sleep(Duration::from_secs(600));
        }
        let folder = Temporary::new();
        let store = folder.open_with(SMALL).expect("a store");
        let limit = bucket(&store, 1e9);
        let take = || store.decide(&limit, None, Call::at(NOW)).expect("an answer");
        take();
        let mut reader = Command::new(std::env::current_exe().expect("this program"));
        reader.args(["--exact", "store::tests::a_reader_that_was_killed_holds_no_pages", "--nocapture"]);
        let mut reader = reader.env("TIDEGATE_READ", &folder.0).stdout(Stdio::piped()).spawn().expect("a process");
        let output = BufReader::new(reader.stdout.take().expect("its output"));
        assert!(output.lines().any(|line| line.expect("a line").contains("it reads")));
        reader.kill().and_then(|()| reader.wait()).expect("its end");
        let last = store.env.info().last_txn_id;
        // Each takes some of the pages that the reader held; without these the file is full before.
        while store.env.info().last_txn_id < last + 3000 {
            take();
        }
    }

    #[test]
    fn a_thread_opens_the_folder_once_another_has_closed_it() {
        let folder = Temporary::new();
        let store = folder.open_with(SMALL).expect("a store");
        // As in a drop that has come so far.
        let FileStore { env, owner, .. } = Arc::into_inner(store).expect("the only one");
        std::thread::scope(|scope| {
            let opening = scope.spawn(|| folder.open_with(SMALL));
            // Without patience, it fails in this time. With it, the time does not matter.
            sleep(Duration::from_millis(50));
            assert!(!opening.is_finished());
            drop((env, owner));
            drop(opening.join().expect("no panic").expect("a store"));
        });
    }
}
