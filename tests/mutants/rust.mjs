/** A mutant of a file of crates/<crate>/src, and tests that must fail: a file of its tests, or a module of its source. */
const one = (crate, file, find, replace, ...tests) => ({
  file: `crates/${crate}/src/${file}`,
  find,
  replace,
  tests: tests.map((test) => `crates/${crate}/${test}`),
});
const file = (...rest) => one("file", ...rest);
const table = (...rest) => one("table", ...rest);
const replay = (...rest) => one("replay", ...rest);
const REPORTS = "tests/reports.rs";
const policy = (path, find, replace) => one("policy", path, find, replace, "tests/documents.rs");

const [FAULTS, SNAPSHOTS, SYNCS] = ["faults", "snapshots", "syncs"].map((name) => `tests/${name}.rs`);
const [STORE, CLOCK, SIZE] = ["store", "clock", "size"].map((name) => `tests/${name}.rs`);
const [TABLE, SHARED, SWINGS, FLOOD] = ["table", "shared", "clock", "flood"].map((name) => `tests/${name}.rs`);

const block = (find, replace) => one("core", "block.rs", find, replace, "tests/laws/block.rs", "tests/vectors.rs");

export const RUST = [
  // Blocks.
  block("from + ms - 1.0", "from + ms"),
  block("max(now, held.ts)", "now"),
  block("if denies { None }", "if false { None }"),
  block("        value += ulps;\n", ""),
  block("        value -= ulps;\n", ""),
  block("min(most, self.refill(Some(held), until).value)", "most"),
  block("index(self, self.start, until - 1.0) + 1.0", "index(self, self.start, until)"),
  block("min(self.one, self.capacity)", "1.0"),
  // When a full state is equal to none.
  ...["ceil(max(full.ts, now))", "min(max(full.ts, now), MAX_NOW_MS)"].map((replace) =>
    one("core", "bucket.rs", "min(ceil(max(full.ts, now)), MAX_NOW_MS)", replace, "tests/laws/state.rs"),
  ),
  // The keys and the numbers of the WebAssembly engine.
  one("wasm", "engine.rs", ".zip(words)", ".zip(words).take(2)", "src/engine.rs"),
  // The folder on LMDB.
  file("open.rs", "if sync != SyncMode::Always {", "if true {", SYNCS),
  file("open.rs", "Duration::from_secs(30)", "Duration::ZERO", FAULTS),
  file("open.rs", "wanted.max_keys.unwrap_or(found.max_keys)", "wanted.max_keys.unwrap_or(DEFAULT_MAX_KEYS)", STORE),
  file("open.rs", "wanted.sync.unwrap_or(found.sync)", "wanted.sync.unwrap_or(DEFAULT_SYNC)", STORE),
  file("open.rs", "if aside.exists() {", "if false {", STORE),
  file("open.rs", "map_size(1 << 20).open(", "map_size(1 << 20).flags(EnvFlags::NO_SYNC).open(", SYNCS),
  file("open.rs", "snapshot::noted_sync(folder))?", "DEFAULT_SYNC)?", SYNCS),
  file("open.rs", "    agree(folder, wanted, settings)?;\n    Ok((env", "    Ok((env", SYNCS),
  file("open.rs", "owner.lock_shared()", "Ok::<(), std::io::Error>(())", SYNCS),
  file("open.rs", "if fork::forked() {", "if false {", FAULTS),
  file("open.rs", ".max(size(folder)?);", ";", SIZE),
  file("open.rs", '    disk::reserve(&folder.join("lock.mdb"), LOCK_BYTES)?;\n', "", SIZE),
  file("open.rs", "LOCK_BYTES: u64 = 1 << 16", "LOCK_BYTES: u64 = 1 << 13", "src/store.rs"),
  file("store.rs", "if change.is_none() {", "if false {", "src/store.rs"),
  file("store.rs", "if !takes || changes.is_empty() {", "if !takes {", "src/store.rs"),
  file("store.rs", "if !takes || changes.is_empty() {", "if changes.is_empty() {", STORE),
  file("store.rs", "                    let _ = self.env.clear_stale_readers();\n", "", "src/store.rs"),
  file("store.rs", "stored.state(&bucket, now), now)", "stored.state(&bucket, f64::MAX), now)", CLOCK),
  file("store.rs", "Duration::from_secs(1);", "Duration::ZERO;", "src/store.rs"),
  file("store.rs", "MdbError::MapFull | MdbError::ReadersFull", "MdbError::MapFull", "src/store.rs"),
  file("store.rs", "        self.alive()?;\n", "", FAULTS),
  file("snapshot.rs", "TICKS: u32 = 3", "TICKS: u32 = 1", "src/snapshot.rs"),
  file("snapshot.rs", "        file.sync_all()?;\n", "", SYNCS),
  file("snapshot.rs", "        let _ = fs::remove_file(&new);\n", "", SNAPSHOTS),
  file("snapshot.rs", "if !tried(folder, turn.try_lock())? {", "if false {", SNAPSHOTS),
  file("snapshot.rs", "if matches!(made, Ok(true)) {", "if true {", SNAPSHOTS),
  file("snapshot.rs", "if matches!(made, Ok(true)) {", "if made.is_ok() {", SNAPSHOTS),
  file("snapshot.rs", "(last || is_due(age(&folder), tick))", "is_due(age(&folder), tick)", SYNCS),
  file("snapshot.rs", "data.exists() && !doubtful(folder)", "data.exists()", SNAPSHOTS),
  file(
    "transaction.rs",
    "map(|(state, _)| Stored::Present(state)).ok_or(Fault::Row)",
    "map_or(Ok(Stored::Absent { fresh_from: 0.0 }), |(state, _)| Ok(Stored::Present(state)))",
    FAULTS,
  ),
  file(
    "transaction.rs",
    "row::read(&other, bytes).ok_or(Fault::Row)?",
    "row::read(&other, bytes).unwrap_or((tidegate_core::State::new(0.0, 0.0).unwrap(), 0.0))",
    FAULTS,
  ),
  file("transaction.rs", "self.max_keys + OWN_ROWS - 1", "self.max_keys + OWN_ROWS", STORE),
  file("transaction.rs", "self.drop_state(key, *full_at, now)?;", "self.drop_state(key, now, now)?;", CLOCK),
  file("transaction.rs", "(over > 0, full.is_empty(), fullest)", "(over > 0, true, fullest)", STORE),
  file("transaction.rs", "full_at < least", "full_at > least", STORE),
  file("transaction.rs", "        self.evicted += 1;\n", "", STORE),
  file("transaction.rs", "if latest != before {", "if false {", CLOCK),
  file("private.rs", "mode(&mut builder, 0o700)", "mode(&mut builder, 0o777)", "tests/private.rs"),
  file("private.rs", "from_mode(0o700)", "from_mode(0o777)", "tests/private.rs"),
  file(
    "private.rs",
    "truncate(truncate);\n    #[cfg(unix)]\n    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);",
    "truncate(truncate);",
    "tests/private.rs",
  ),
  file("verify.rs", "if !self.taken.insert(number) {", "if false {", FAULTS),
  file("verify.rs", "number < 2 || number > self.last", "number < 2", FAULTS),
  file("verify.rs", "{ row::opened(key, value).is_some() }", "{ true }", FAULTS),
  file("verify.rs", "{ row::read(key, value).is_some() }", "{ true }", FAULTS),
  file("row.rs", ".rotate_left(1)", "", "src/row.rs"),
  file("row.rs", "number(key.get(..8).unwrap_or_default())", "0", "src/row.rs"),
  // The fields of a JSON line.
  ...[
    ["*known == name", "known.eq_ignore_ascii_case(&name)"],
    ["for slot in &self.names.slots {", "for slot in self.names.slots.iter().take(1) {"],
    ["if learnt {", "if learnt && self.known.inner.is_empty() {"],
    ["fields.get(slot).is_none()\n                &&", "true &&"],
  ].map(([find, replace]) => one("replay", "format/json.rs", find, replace, "src/format/json.rs")),
  // The report of log replay.
  replay("html.rs", "        escaped(text)\n", "        text\n", REPORTS),
  replay("html.rs", ".replace('&', \"&amp;\")", "", REPORTS),
  replay("tally.rs", "p90: at(90.0)", "p90: at(99.0)", REPORTS),
  replay("top.rs", ".then_with(|| a.0.cmp(b.0))", "", "src/top.rs"),
  replay("top.rs", "seen.longest.max(time)", "time", "src/top.rs"),
  replay(
    "tally.rs",
    "            limit.applied = true;\n",
    "            limit.applied |= !decision.ok;\n",
    "tests/limits.rs",
  ),
  // The clock of dropped states.
  ...[
    ["at > before || broken(before)", "broken(before)"],
    ["at > before || broken(before)", "at > before"],
    ["!broken(at) && (", "("],
  ].map(([find, replace]) => one("core", "bucket.rs", find, replace, "tests/laws/clock.rs")),
  table("dump.rs", "if table.keys < states {", "if false {", SWINGS),
  // The table of states in memory, and the one that threads share.
  table("table.rs", "self.keys + 1 - dropped as usize", "self.keys + 1", TABLE),
  table("table.rs", "self.keys >= self.max_keys", "self.keys > self.max_keys", TABLE),
  table("table.rs", "segment.reset(digest)) {\n            self.keys -= 1;", "segment.reset(digest)) {", TABLE),
  table("table.rs", "if was_full {\n", "if !was_full {\n", TABLE),
  table("table.rs", "        self.expired += u64::from(dropped);\n", "", TABLE),
  table("table.rs", "                self.write(change, now);\n", "", "tests/take_all.rs"),
  table("shared.rs", "        self.keys.fetch_sub(dropped as usize, Relaxed);\n", "", SHARED),
  table("shared.rs", ">= self.max_keys", "> self.max_keys", SHARED),
  table(
    "shared.rs",
    "segment.reset(digest) {\n            self.keys.fetch_sub(1, Relaxed);",
    "segment.reset(digest) {",
    SHARED,
  ),
  table(
    "shared.rs",
    "            self.keys.fetch_sub(1, Relaxed);\n            if was_full",
    "            if was_full",
    SHARED,
  ),
  table(
    "shared.rs",
    "self.expired.fetch_add(u64::from(dropped), Relaxed)",
    "self.expired.fetch_add(0, Relaxed)",
    SHARED,
  ),
  table("segment.rs", "self.dropped(fresh_from, now);", "", SWINGS),
  table("segment.rs", "if was_full { full_at } else { ts }", "ts", SWINGS),
  table("segment.rs", "let was_full = full_at <= now;", "let was_full = full_at < now;", TABLE),
  table("segment.rs", "full_at < least", "full_at > least", TABLE, FLOOD),
  table("segment.rs", "met == SAMPLE", "false", "src/segment.rs"),
  table("segment.rs", "entry.full_at() > now;", "true;", TABLE),
  table(
    "call.rs",
    "                count += other.count;",
    "                count = other.count;",
    "tests/take_all.rs",
  ),
  table("call.rs", "        changes.clear();\n", "", "tests/take_all.rs"),
  table(
    "call.rs",
    "decision.ok == ok && latest.is_none_or(|latest| at > latest)",
    "decision.ok == ok",
    "tests/take_all.rs",
  ),
  // Policy documents.
  policy(
    "cost.rs",
    "&bounds, default.min(1.0), report);\n                Cost { stated",
    "&bounds, 0.0, report);\n                Cost { stated",
  ),
  policy("cost.rs", "Bounds::up_to(max.unwrap_or(most).min(most))", "Bounds::up_to(max.unwrap_or(most))"),
  policy("cost.rs", "Bounds { granted: true, ..Bounds::up_to(most) }", "Bounds::up_to(Field::Count.bound().max)"),
  policy(
    "cost.rs",
    "Cost { stated, default, min: default.min(1.0), max: None }",
    "Cost { stated, default, min: 0.0, max: None }",
  ),
  policy("cost.rs", "above_zero: true", "above_zero: false"),
  policy("algorithm.rs", "if field == Field::Start && text == FIRST", "if text == FIRST"),
  policy("descriptor.rs", ' || text == "address"', ""),
  policy("limit.rs", "(policy.capacity() + reserved).min(Field::Count.bound().max)", "policy.capacity() + reserved"),
  one("policy", "nearest.rs", "word.len().max(3)", "word.len()", "src/nearest.rs"),
  policy("tiers.rs", "Limit::new(policy, reserve)", "Limit::new(policy, false)"),
  policy("tiers.rs", "if limit.grantable < cost.default {", "if false {"),
  policy("tiers.rs", 'if name == "__proto__" {', "if false {"),
  policy("limit.rs", "if reserve { policy.max_reserved() }", "if false { policy.max_reserved() }"),
  policy("descriptor.rs", " && !name.chars().any(char::is_control)", ""),
  policy("descriptor.rs", "name.to_ascii_lowercase()", "name.to_owned()"),
  policy("descriptor.rs", "name.chars().count() <= LONGEST", "true"),
  policy("tree.rs", "if value.is_finite() => ", "=> "),
  policy("tree.rs", "control if control < ' ' =>", "control if false =>"),
  policy("rule.rs", "if found.contains(&key) {", "if false {"),
  policy("rule.rs", "list.len() <= MAX_KEYS", "true"),
  policy("enforcement.rs", "*local > 0.0 && *local <= 1.0", "*local <= 1.0"),
  policy("enforcement.rs", "(1.0..=MAX_AFTER).contains(after)", "(*after >= 1.0)"),
  policy("enforcement.rs", "&& name.len() > MAX_BLOCKED_NAME", "&& name.len() > MAX_NAME_BYTES"),
  policy("document.rs", "if self.counts.contains(&name) {", "if false {"),
  policy("document.rs", "counts.iter().find(|count| self.rules.contains(count))", "counts.iter().find(|_| false)"),
];
