/// What a folder holds, and what this process has dropped from it.
#[derive(Clone, Debug)]
pub struct Stats {
    /// States held now.
    pub keys: u64,
    /// The most it may hold.
    pub max_keys: u64,
    /// States dropped by this process for want of room that were not full.
    pub evicted: u64,
    /// Full states dropped by this process; losing one loses nothing.
    pub expired: u64,
    /// Bytes of the data file, used and free. A snapshot takes at most as much again, and twice while one is made.
    pub bytes: u64,
    /// Why the last snapshot could not be made, where it could not.
    pub sync_error: Option<String>,
}
