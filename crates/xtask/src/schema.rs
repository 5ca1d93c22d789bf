//! The JSON Schema of policy documents, for editors and validators.

use crate::files;
use anyhow::Result;
use std::path::Path;

pub(crate) fn write(folder: &Path) -> Result<()> {
    let text = format!("{:#}\n", tidegate_policy::schema());
    files::write(&folder.join("policy.schema.json"), text.as_bytes())
}
