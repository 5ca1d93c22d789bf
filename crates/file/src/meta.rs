//! The two pages that a data file begins with, as LMDB's `mdb.c` lays them out: where its trees are.

/// Bytes before a page's own content.
pub(crate) const HEADER: usize = 16;
const META: u16 = 8;
const MAGIC: u32 = 0xbeef_c0de;

fn at<const N: usize>(bytes: &[u8], from: usize) -> Result<[u8; N], String> {
    let part = from.checked_add(N).and_then(|to| bytes.get(from..to));
    part.and_then(|part| part.try_into().ok()).ok_or_else(|| "it ends too early".to_owned())
}

pub(crate) fn u16_at(bytes: &[u8], from: usize) -> Result<u16, String> {
    at(bytes, from).map(u16::from_le_bytes)
}

pub(crate) fn u32_at(bytes: &[u8], from: usize) -> Result<u32, String> {
    at(bytes, from).map(u32::from_le_bytes)
}

pub(crate) fn u64_at(bytes: &[u8], from: usize) -> Result<u64, String> {
    at(bytes, from).map(u64::from_le_bytes)
}

/// One tree as its meta page tells it.
pub(crate) struct Tree {
    /// How its keys and values are ordered.
    pub(crate) flags: u16,
    pub(crate) depth: u16,
    pub(crate) entries: u64,
    pub(crate) root: u64,
}

pub(crate) struct Meta {
    pub(crate) page: usize,
    pub(crate) txn: u64,
    pub(crate) last: u64,
    pub(crate) free: Tree,
    pub(crate) main: Tree,
}

pub(crate) fn meta(bytes: &[u8], from: usize) -> Result<Meta, String> {
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
