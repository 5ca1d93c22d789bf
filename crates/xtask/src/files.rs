//! Writes a file only if its content changes, so that later build steps are not repeated.

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
    fs::write(path, content).with_context(|| format!("write {}", path.display()))?;
    eprintln!("xtask: wrote {} ({} bytes)", path.display(), content.len());
    Ok(())
}
