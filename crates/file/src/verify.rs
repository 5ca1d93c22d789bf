//! Verifies a data file. LMDB maps it and follows its pointers unchecked, so a damaged file could end the process.
//! Therefore the first process that opens the folder checks every page. The layout is that of LMDB's `mdb.c`.

use crate::row;
use std::collections::HashSet;

/// Length of a page header in bytes.
const HEADER: usize = 16;
const META: u16 = 8;
const MAGIC: u32 = 0xbeef_c0de;

fn at<const N: usize>(bytes: &[u8], from: usize) -> Result<[u8; N], String> {
    let part = from.checked_add(N).and_then(|to| bytes.get(from..to));
    part.and_then(|part| part.try_into().ok()).ok_or_else(|| "it ends too early".to_owned())
}

fn u16_at(bytes: &[u8], from: usize) -> Result<u16, String> {
    at(bytes, from).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], from: usize) -> Result<u32, String> {
    at(bytes, from).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], from: usize) -> Result<u64, String> {
    at(bytes, from).map(u64::from_le_bytes)
}

/// One tree, as its meta page describes it.
struct Tree {
    /// How its keys and values are ordered.
    flags: u16,
    depth: u16,
    entries: u64,
    root: u64,
}

struct Meta {
    page: usize,
    txn: u64,
    last: u64,
    free: Tree,
    main: Tree,
}

fn meta(bytes: &[u8], from: usize) -> Result<Meta, String> {
    let body = from + HEADER;
    let tree = |from: usize| -> Result<Tree, String> {
        Ok(Tree {
            flags: u16_at(bytes, from + 4)?,
            depth: u16_at(bytes, from + 6)?,
            entries: u64_at(bytes, from + 32)?,
            root: u64_at(bytes, from + 40)?,
        })
    };
    if u16_at(bytes, from + 10)? & META == 0 || u32_at(bytes, body)? != MAGIC || u32_at(bytes, body + 4)? != 1 {
        return Err("it is not a file of this kind".into());
    }
    Ok(Meta {
        page: u32_at(bytes, body + 24)? as usize,
        last: u64_at(bytes, body + 120)?,
        txn: u64_at(bytes, body + 128)?,
        free: tree(body + 24)?,
        main: tree(body + 72)?,
    })
}

/// Length of a node header in bytes.
const NODE: usize = 8;
const BRANCH: u16 = 1;
const LEAF: u16 = 2;
const OVERFLOW: u16 = 4;
/// Flag of a node whose value is on overflow pages.
const BIG: u16 = 1;
/// Flag of the tree of free pages, whose keys are integers. The tree of states has no such flag.
const INTEGER_KEY: u16 = 8;
/// Longest key in bytes.
const LONGEST: usize = 511;
/// Depth that no sound tree reaches.
const DEEPEST: u16 = 32;

/// One node of a page.
struct Node<'a> {
    /// Offset of its header.
    start: usize,
    key: &'a [u8],
    /// Offset after its key.
    end: usize,
    flags: u16,
    /// The lower 32 bits of its header: the size of its value or, of a branch, the lower bits of a page.
    number: u32,
}

impl<'a> Node<'a> {
    /// Node `i` of a page whose nodes begin at `high`.
    fn read(page: &'a [u8], i: usize, high: usize, wrong: impl Fn(&str) -> String) -> Result<Node<'a>, String> {
        let start = usize::from(u16_at(page, HEADER + 2 * i)?);
        if start < high || start % 2 != 0 {
            return Err(wrong("points outside of itself"));
        }
        let (number, flags) = (u32_at(page, start)?, u16_at(page, start + 4)?);
        let end = start + NODE + usize::from(u16_at(page, start + 6)?);
        let key = page.get(start + NODE..end).ok_or_else(|| wrong("has a key outside of itself"))?;
        Ok(Node { start, key, end, flags, number })
    }

    /// The page below it, in a branch.
    fn child(&self) -> u64 {
        u64::from(self.number) | u64::from(self.flags) << 32
    }
}

type Verified = Result<(), String>;
type Less = fn(&[u8], &[u8]) -> bool;
type Check<'c, 'a> = &'c mut dyn FnMut(&mut Walk<'a>, &[u8], &[u8]) -> Verified;

struct Walk<'a> {
    bytes: &'a [u8],
    page: usize,
    last: u64,
    /// Pages seen so far, used or free. No page may occur twice.
    taken: HashSet<u64>,
    entries: u64,
    /// Length of each key in bytes, if all are equally long.
    key: Option<usize>,
    less: Less,
    /// The last key seen, which the next one may not precede.
    before: Option<&'a [u8]>,
    least: Option<&'a [u8]>,
}

impl<'a> Walk<'a> {
    fn take(&mut self, number: u64, count: u64) -> Verified {
        for number in number..number.checked_add(count).ok_or("a page beyond all numbers")? {
            if number < 2 || number > self.last {
                return Err(format!("page {number} is beyond its end"));
            }
            if !self.taken.insert(number) {
                return Err(format!("page {number} is used twice"));
            }
        }
        Ok(())
    }

    fn page(&self, number: u64, count: u64) -> Result<&'a [u8], String> {
        let from = usize::try_from(number).ok().and_then(|number| number.checked_mul(self.page));
        let length = usize::try_from(count).ok().and_then(|count| count.checked_mul(self.page));
        let range = from.zip(length).and_then(|(from, length)| Some(from..from.checked_add(length)?));
        let page = range.and_then(|range| self.bytes.get(range)).ok_or_else(|| format!("page {number} is missing"))?;
        if u64_at(page, 0)? == number { Ok(page) } else { Err(format!("page {number} has the number of another")) }
    }

    /// The value of a node of a leaf: in the page, or on pages of its own.
    fn value(&mut self, page: &'a [u8], node: &Node<'a>, wrong: impl Fn(&str) -> String) -> Result<&'a [u8], String> {
        let size = node.number as usize;
        if node.flags & !BIG != 0 {
            return Err(wrong("has a value of another kind"));
        }
        if node.flags != BIG {
            let value = node.end.checked_add(size).and_then(|end| page.get(node.end..end));
            return value.ok_or_else(|| wrong("has a value outside of itself"));
        }
        let first = u64_at(page, node.end)?;
        let pages = (HEADER + size).div_ceil(self.page) as u64;
        self.take(first, pages)?;
        let big = self.page(first, pages)?;
        if u16_at(big, 10)? != OVERFLOW || u64::from(u32_at(big, 12)?) != pages {
            return Err(wrong("has a value on pages of another kind"));
        }
        big.get(HEADER..HEADER + size).ok_or_else(|| wrong("has a value that ends too early"))
    }

    /// Checks everything below a page, and calls `check` with each key and value, in order.
    fn subtree(&mut self, number: u64, depth: u16, check: Check<'_, 'a>) -> Verified {
        self.take(number, 1)?;
        let page = self.page(number, 1)?;
        let wrong = |what: &str| format!("page {number} {what}");
        let (kind, low, high) = (u16_at(page, 10)?, usize::from(u16_at(page, 12)?), usize::from(u16_at(page, 14)?));
        if kind != if depth == 1 { LEAF } else { BRANCH } {
            return Err(wrong("is of another kind than its place"));
        }
        if low < HEADER || low > high || high > page.len() || low % 2 != 0 {
            return Err(wrong("has impossible bounds"));
        }
        let nodes = (low - HEADER) / 2;
        let mut spans = Vec::with_capacity(nodes);
        if nodes == 0 || (kind == BRANCH && nodes < 2) {
            return Err(wrong("is empty"));
        }
        for i in 0..nodes {
            let node = Node::read(page, i, high, wrong)?;
            let (key, length) = (node.key, node.key.len());
            if length > LONGEST || (self.key.is_some_and(|own| own != length) && (kind == LEAF || i > 0)) {
                return Err(wrong("has a key of another length"));
            }
            if kind == BRANCH {
                spans.push((node.start, node.end));
                // A branch page omits its first key, which is less than all others.
                if i > 0 && self.before.is_some_and(|before| !(self.less)(before, key)) {
                    return Err(wrong("is out of order"));
                }
                self.least = if i > 0 { Some(key) } else { self.least };
                self.subtree(node.child(), depth - 1, check)?;
                continue;
            }
            let value = self.value(page, &node, wrong)?;
            spans.push((node.start, node.end + if node.flags == BIG { 8 } else { value.len() }));
            let early = self.before.is_some_and(|before| !(self.less)(before, key));
            if early || self.least.is_some_and(|least| (self.less)(key, least)) {
                return Err(wrong("is out of order"));
            }
            self.before = Some(key);
            check(self, key, value).map_err(|what| wrong(&what))?;
            self.entries += 1;
        }
        // LMDB closes the gap of a removed node, so nodes are adjacent, at even offsets.
        spans.sort_unstable();
        let end = spans.iter().try_fold(high, |next, &(from, to)| (from == next).then(|| to.next_multiple_of(2)));
        if end == Some(page.len()) { Ok(()) } else { Err(wrong("has nodes that overlap, or gaps")) }
    }

    /// Checks a tree as [`Walk::subtree`] does, and that it has as many entries as its meta page states.
    fn tree(&mut self, tree: &Tree, less: Less, check: Check<'_, 'a>) -> Verified {
        (self.entries, self.less, self.before, self.least) = (0, less, None, None);
        if tree.root != u64::MAX {
            if tree.depth == 0 || tree.depth > DEEPEST {
                return Err("a tree of impossible depth".into());
            }
            self.subtree(tree.root, tree.depth, check)?;
        }
        if self.entries == tree.entries {
            Ok(())
        } else {
            Err(format!("{} entries are {}", tree.entries, self.entries))
        }
    }
}

/// Integer order, as in the tree of free pages.
fn before_as_number(a: &[u8], b: &[u8]) -> bool {
    u64_at(a, 0).ok() < u64_at(b, 0).ok()
}

/// The newer of the two meta pages.
fn newest(bytes: &[u8]) -> Result<Meta, String> {
    let first = meta(bytes, 0)?;
    if !(512..=0x8000).contains(&first.page) || !first.page.is_power_of_two() {
        return Err("it has pages of an impossible size".into());
    }
    let second = meta(bytes, first.page)?;
    // LMDB takes the size from the newer one.
    if second.page != first.page {
        return Err("it has pages of two sizes".into());
    }
    Ok(if second.txn > first.txn { second } else { first })
}

/// Number of bytes that [`used`] reads.
pub(crate) const HEAD: u64 = 1 << 16;

/// How many bytes of the file are used, according to its first [`HEAD`] bytes.
pub(crate) fn used(head: &[u8]) -> Result<u64, String> {
    let meta = newest(head)?;
    Ok(meta.last.saturating_add(1).saturating_mul(meta.page as u64))
}

/// Checks the file as its next reader would see it.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn verify(bytes: &[u8]) -> Result<(), String> {
    let meta = newest(bytes)?;
    // LMDB would extend the file to its last page, whatever number that has, and map it.
    if used(bytes)? > bytes.len() as u64 {
        return Err(format!("it ends before page {}, its last", meta.last));
    }
    if (meta.main.flags, meta.free.flags) != (0, INTEGER_KEY) {
        return Err("it has a tree of another order".into());
    }
    let less: Less = |a, b| a < b;
    let mut walk = Walk {
        bytes,
        page: meta.page,
        last: meta.last,
        taken: HashSet::new(),
        entries: 0,
        key: None,
        less,
        before: None,
        least: None,
    };
    walk.tree(&meta.main, less, &mut |_, key, value| {
        let sound =
            if key.len() == row::KEY { row::read(key, value).is_some() } else { row::opened(key, value).is_some() };
        if sound { Ok(()) } else { Err("has a row that is not what was written".into()) }
    })?;
    // Free pages must not be in use. A list of pages begins with its length.
    walk.key = Some(8);
    walk.tree(&meta.free, before_as_number, &mut |walk, key, value| {
        let count = u64_at(value, 0)?;
        if value.len() as u64 != count.saturating_mul(8).saturating_add(8) {
            return Err("has a list of another length".into());
        }
        // LMDB would read a list of transaction 0 in an endless loop.
        if !(1..=meta.txn).contains(&u64_at(key, 0)?) {
            return Err("has a list of an impossible transaction".into());
        }
        let mut before = u64::MAX;
        for page in value.as_chunks::<8>().0.iter().skip(1).map(|page| u64::from_le_bytes(*page)) {
            if page >= before {
                return Err("has a list that is out of order".into());
            }
            before = page;
            walk.take(page, 1)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests;
