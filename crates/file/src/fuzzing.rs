//! The data file's format, for the fuzz targets of this repository. Not a public interface.
#![allow(missing_docs)]

pub mod row {
    use tidegate_core::State;

    pub const KEY: usize = crate::row::KEY;

    pub fn write(key: &[u8; KEY], state: State, full_at: f64) -> [u8; crate::row::ROW] {
        crate::row::write(key, state, full_at)
    }

    pub fn sealed(key: &[u8], body: &[u8]) -> Vec<u8> {
        crate::row::sealed(key, body)
    }

    pub fn read(key: &[u8], row: &[u8]) -> Option<(State, f64)> {
        crate::row::read(key, row)
    }
}

pub mod verify {
    pub const HEAD: u64 = crate::verify::HEAD;

    pub fn used(head: &[u8]) -> Result<u64, String> {
        crate::verify::used(head)
    }

    pub fn verify(bytes: &[u8]) -> Result<(), String> {
        crate::verify::verify(bytes)
    }
}
