//! Files that LMDB writes are sound, and each damage is reported by its rule. The layout is that of LMDB's `mdb.c`.

use super::*;
use crate::transaction::Rows;
use heed::{Env, EnvFlags, EnvOpenOptions, WithoutTls};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use tidegate_core::State;

const PAGE: usize = 4096;
/// Offsets of the two trees within a meta page.
const FREE: usize = HEADER + 24;
const MAIN: usize = HEADER + 72;

/// A data file, without the free pages at its end.
#[derive(Clone)]
struct Image(Vec<u8>);

impl Image {
    /// What LMDB writes with these calls.
    fn written(write: impl FnOnce(&Env<WithoutTls>, Rows) -> heed::Result<()>) -> Image {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("tidegate-file-verify-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).expect("a folder");
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size(1 << 24);
        // Safety: no other process has this folder. Unsynced, since it is not kept.
        let env = unsafe { options.flags(EnvFlags::NO_SYNC).open(&folder) }.expect("LMDB");
        let mut txn = env.write_txn().expect("a transaction");
        let rows = env.create_database(&mut txn, None).expect("rows");
        txn.commit().expect("a commit");
        write(&env, rows).expect("LMDB");
        env.prepare_for_closing().wait();
        let bytes = std::fs::read(folder.join("data.mdb")).expect("a data file");
        std::fs::remove_dir_all(folder).expect("our own folder");
        let used = used(&bytes[..bytes.len().min(HEAD as usize)]).expect("a meta page") as usize;
        Image(bytes[..used].to_vec())
    }

    fn u16(&self, at: usize) -> u16 {
        u16_at(&self.0, at).expect("a place")
    }

    fn u64(&self, at: usize) -> u64 {
        u64_at(&self.0, at).expect("a place")
    }

    /// Offset of the newer meta page.
    fn meta(&self) -> usize {
        let txn = |meta: usize| self.u64(meta + HEADER + 128);
        if txn(PAGE) > txn(0) { PAGE } else { 0 }
    }

    /// Offset of a tree's root.
    fn root(&self, tree: usize) -> usize {
        self.u64(self.meta() + tree + 40) as usize * PAGE
    }

    fn depth(&self, tree: usize) -> u16 {
        self.u16(self.meta() + tree + 6)
    }

    /// Offset of a node of a page.
    fn node(&self, page: usize, i: usize) -> usize {
        page + usize::from(self.u16(page + HEADER + 2 * i))
    }

    /// Offset of the page that a branch node points to.
    fn child(&self, page: usize, i: usize) -> usize {
        usize::from(self.u16(self.node(page, i))) * PAGE
    }

    fn with(&self, at: usize, bytes: impl AsRef<[u8]>) -> Image {
        let mut image = self.clone();
        image.0[at..at + bytes.as_ref().len()].copy_from_slice(bytes.as_ref());
        image
    }

    #[track_caller]
    fn assert_sound(&self) {
        assert_eq!(verify(&self.0), Ok(()));
    }

    #[track_caller]
    fn assert_wrong(&self, what: &str) {
        let error = verify(&self.0).expect_err(what);
        assert!(error.ends_with(what), "{error:?} is not {what:?}");
    }
}

/// Puts rows with a hash, each in its own transaction.
fn put<'k>(env: &Env<WithoutTls>, rows: Rows, all: impl IntoIterator<Item = (&'k [u8], usize)>) -> heed::Result<()> {
    for (key, length) in all {
        let mut txn = env.write_txn()?;
        rows.put(&mut txn, key, &row::sealed(key, &vec![7; length]))?;
        txn.commit()?;
    }
    Ok(())
}

/// One leaf with states, a value of two pages and rows of odd length; free pages.
fn small() -> Image {
    Image::written(|env, rows| {
        let mut txn = env.write_txn()?;
        for byte in [1, 2, 3] {
            let key = [byte; row::KEY];
            rows.put(&mut txn, &key, &row::write(&key, State::new(-2.5, 1e12).expect("a state"), 2e12))?;
        }
        txn.commit()?;
        // With its hash and a header, one byte more than a page has.
        put(env, rows, [(&b"big"[..], 4073), (b"odd", 5), (b"settings", 32), (b"big", 4073)])
    })
}

/// Three levels of pages, since the keys are long.
fn deep() -> Image {
    let keys: Vec<Vec<u8>> = (0..200_u32).map(|i| (i * 77 % 200 * 1000).to_be_bytes().repeat(125)).collect();
    let image = Image::written(|env, rows| put(env, rows, keys.iter().map(|key| (key.as_slice(), 1))));
    assert_eq!(image.depth(MAIN), 3);
    image
}

/// Two levels of free pages, since a reader keeps them from being used again.
fn freed() -> Image {
    let image = Image::written(|env, rows| {
        let _reader = env.read_txn()?;
        put(env, rows, [(&b"key"[..], 1); 200])
    });
    assert_eq!(image.depth(FREE), 2);
    image
}

#[test]
fn files_of_every_shape_are_sound_to_their_last_byte() {
    for image in [small(), deep(), freed()] {
        image.assert_sound();
        assert_eq!(used(&image.0[..image.0.len().min(HEAD as usize)]), Ok(image.0.len() as u64));
        Image(image.0[..image.0.len() - 1].to_vec()).assert_wrong(", its last");
    }
    Image::written(|_, _| Ok(())).assert_sound();
    let longest = [7; LONGEST];
    Image::written(|env, rows| put(env, rows, [(&longest[..], 1), (&longest[1..], 2)])).assert_sound();
    // Ten rows that leave no byte between them and the list of their places.
    let keys: Vec<[u8; 8]> = (0..10_u64).map(u64::to_be_bytes).collect();
    let full = Image::written(|env, rows| put(env, rows, keys.iter().map(|key| (key.as_slice(), 382))));
    assert_eq!(full.u16(full.root(MAIN) + 12), full.u16(full.root(MAIN) + 14));
    full.assert_sound();
    // A branch with as few pages as it may have.
    let two = Image::written(|env, rows| put(env, rows, keys[..5].iter().map(|key| (key.as_slice(), 900))));
    assert_eq!((two.depth(MAIN), two.u16(two.root(MAIN) + 12)), (2, HEADER as u16 + 4));
    two.assert_sound();
}

#[test]
fn the_newer_meta_page_counts_and_of_two_equal_ones_the_first() {
    let no_depth = |image: &Image, meta: usize| image.with(meta + MAIN + 6, [0, 0]);
    for commits in [3, 4] {
        let image = Image::written(|env, rows| put(env, rows, vec![(&b"key"[..], 1); commits]));
        let newer = image.meta();
        no_depth(&image, PAGE - newer).assert_sound();
        no_depth(&image, newer).assert_wrong("a tree of impossible depth");
        let equal = image.with(PAGE - newer + HEADER + 128, image.u64(newer + HEADER + 128).to_le_bytes());
        let of_newer = &image.0[newer..newer + PAGE];
        let equal = equal.with(0, of_newer);
        no_depth(&equal, PAGE).assert_sound();
        no_depth(&equal, 0).assert_wrong("a tree of impossible depth");
    }
}

#[test]
fn each_damage_of_a_meta_page_is_reported() {
    let image = small();
    let meta = image.meta();
    for page in [0, PAGE] {
        image.with(page + 10, [0, 0]).assert_wrong("it is not a file of this kind");
        image.with(page + HEADER, [0]).assert_wrong("it is not a file of this kind");
        image.with(page + HEADER + 4, [2]).assert_wrong("it is not a file of this kind");
    }
    // Out of range, and not a power of two.
    for size in [256_u32, 5000] {
        image.with(HEADER + 24, size.to_le_bytes()).assert_wrong("it has pages of an impossible size");
    }
    // LMDB would divide by the size of the newer one.
    let empty = Image::written(|_, _| Ok(())).with(PAGE + HEADER + 128, [1]);
    empty.assert_sound();
    for size in [0_u32, 8192] {
        empty.with(PAGE + HEADER + 24, size.to_le_bytes()).assert_wrong("it has pages of two sizes");
    }
    for (tree, flags) in [(MAIN, INTEGER_KEY), (FREE, 0)] {
        image.with(meta + tree + 4, flags.to_le_bytes()).assert_wrong("it has a tree of another order");
        for depth in [0, DEEPEST + 1] {
            image.with(meta + tree + 6, depth.to_le_bytes()).assert_wrong("a tree of impossible depth");
        }
        image.with(meta + tree + 6, DEEPEST.to_le_bytes()).assert_wrong("is of another kind than its place");
        let entries = image.u64(meta + tree + 32);
        image
            .with(meta + tree + 32, (entries + 1).to_le_bytes())
            .assert_wrong(&format!("{} entries are {entries}", entries + 1));
        image.with(meta + tree + 40, 1_u64.to_le_bytes()).assert_wrong("page 1 is beyond its end");
    }
}

#[test]
fn each_damage_of_a_page_of_rows_is_reported() {
    let image = small();
    let leaf = image.root(MAIN);
    let (low, high) = (image.u16(leaf + 12), image.u16(leaf + 14));
    let header = |at: usize, number: u16, what: &str| image.with(leaf + at, number.to_le_bytes()).assert_wrong(what);
    image.with(leaf, [0xff]).assert_wrong("has the number of another");
    header(10, BRANCH, "is of another kind than its place");
    for low in [14, low + 1, high + 2] {
        header(12, low, "has impossible bounds");
    }
    header(12, HEADER as u16, "is empty");
    header(14, PAGE as u16 + 2, "has impossible bounds");
    header(14, PAGE as u16, "points outside of itself");
    header(14, high + 2, "points outside of itself");
    header(14, high - 2, "has nodes that overlap, or gaps");
    let last = HEADER + 2 * (usize::from(low) - HEADER) / 2 - 2;
    header(last, image.u16(leaf + last) | 1, "points outside of itself");

    let nodes = (0..(usize::from(low) - HEADER) / 2).map(|i| image.node(leaf, i));
    let highest = nodes.max().expect("a node");
    let node = |at: usize, number: u16, what: &str| image.with(at, number.to_le_bytes()).assert_wrong(what);
    node(highest + 6, LONGEST as u16, "has a key outside of itself");
    node(highest + 2, 1, "has a value outside of itself");
    for flags in [2, 4 | BIG] {
        node(highest + 4, flags, "has a value of another kind");
    }
    image.with(image.node(leaf, 0) + NODE + row::KEY, [9]).assert_wrong("has a row that is not what was written");

    // A key that is not above the one before.
    for byte in [1, 0] {
        image.with(image.node(leaf, 1) + NODE, [byte; row::KEY]).assert_wrong("is out of order");
    }
}

#[test]
fn each_damage_of_a_value_on_pages_of_its_own_is_reported() {
    let image = small();
    let leaf = image.root(MAIN);
    let nodes = (usize::from(image.u16(leaf + 12)) - HEADER) / 2;
    let big = (0..nodes).map(|i| image.node(leaf, i)).find(|node| image.u16(node + 4) == BIG).expect("a big value");
    let first = image.u64(big + NODE + 3) as usize * PAGE;
    let what = "has a value on pages of another kind";
    image.with(first + 10, LEAF.to_le_bytes()).assert_wrong(what);
    image.with(first + 12, [3]).assert_wrong(what);
    image.with(first + PAGE, [9]).assert_wrong("has a row that is not what was written");
    // Of 65,536 bytes more.
    image.with(big + 2, [1]).assert_wrong("is beyond its end");
    image.with(big + NODE + 3, (leaf as u64 / PAGE as u64).to_le_bytes()).assert_wrong("is used twice");
}

#[test]
fn each_damage_between_levels_of_pages_is_reported() {
    let image = deep();
    let root = image.root(MAIN);
    let node = image.node(root, 1);
    image.with(root + 12, [HEADER as u8 + 2, 0]).assert_wrong("is empty");
    image.with(node + 2, [1]).assert_wrong("is beyond its end");
    image.with(node + 4, [1]).assert_wrong("is beyond its end");
    // A branch's key is above all before it, and not above any behind it.
    let key = node + NODE;
    let first = u32::from_be_bytes(at(&image.0, key).expect("a key"));
    image.with(key, (first - 1000).to_be_bytes().repeat(125)).assert_wrong("is out of order");
    let branch = image.child(root, 1);
    let leaf = image.child(branch, 0);
    let lowest = image.node(leaf, 0) + NODE;
    assert_eq!(image.u64(lowest), image.u64(key), "the first key of the leaf is that of the branch");
    image.with(lowest, (first - 1).to_be_bytes()).assert_wrong("is out of order");
    // The lowest node of a leaf has room behind it.
    let longest = leaf + usize::from(image.u16(leaf + 14)) + 6;
    image.with(longest, (LONGEST as u16 + 1).to_le_bytes()).assert_wrong("has a key of another length");
    let next = image.child(branch, 1);
    let second = image.node(next, 0) + NODE;
    let number = u32::from_be_bytes(at(&image.0, second).expect("a key"));
    image.with(second, (number - 1).to_be_bytes()).assert_wrong("is out of order");
}

#[test]
fn each_damage_of_the_free_pages_is_reported() {
    let image = small();
    let meta = image.meta();
    let node = image.node(image.root(FREE), 0);
    let (key, list) = (node + NODE, node + NODE + 8);
    let number = |at: usize, number: u64, what: &str| image.with(at, number.to_le_bytes()).assert_wrong(what);
    assert!(image.u64(list) >= 2, "a list of pages");
    number(list, image.u64(list) + 1, "has a list of another length");
    for txn in [0, image.u64(meta + HEADER + 128) + 1] {
        number(key, txn, "has a list of an impossible transaction");
    }
    number(list + 16, image.u64(list + 8), "has a list that is out of order");
    number(list + 8, image.u64(meta + HEADER + 120) + 1, "is beyond its end");
    number(list + 8 * image.u64(list) as usize, 1, "page 1 is beyond its end");

    let image = freed();
    let root = image.root(FREE);
    // In a branch, all keys but the first are numbers too.
    image.with(image.node(root, 1) + 6, [6]).assert_wrong("has a key of another length");
    let leaf = image.child(root, 0);
    image.with(image.node(leaf, 0) + 6, [6]).assert_wrong("has a key of another length");
    let [first, second] = [0, 1].map(|i| image.node(leaf, i) + NODE);
    image.with(second, image.u64(first).to_le_bytes()).assert_wrong("is out of order");
}
