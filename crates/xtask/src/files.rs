//! Writes a file only where its content changes, so that what depends on it stays fresh.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

pub(crate) fn write(path: &Path, content: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|there| there == content) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    }
    // A new file takes the old one's place: a process that has the old addon loaded keeps it.
    let fresh = path.with_extension("part");
    fs::write(&fresh, content).with_context(|| format!("write {}", fresh.display()))?;
    fs::rename(&fresh, path).with_context(|| format!("write {}", path.display()))?;
    eprintln!("xtask: wrote {} ({} bytes)", path.display(), content.len());
    Ok(())
}
