use animal_store_adapters_sqlite::SqliteFile;
use tokio::task::spawn_blocking;

use crate::config::SqliteConfig;

/// The SQLite file. The first adapter that needs it opens it, and the others share it.
#[derive(Default)]
pub(crate) struct SharedFile(Option<SqliteFile>);

impl SharedFile {
    pub(crate) async fn open(&mut self, config: &SqliteConfig) -> anyhow::Result<SqliteFile> {
        if let Some(file) = &self.0 {
            return Ok(file.clone());
        }
        let (path, timeout) = (config.path.clone(), config.settings.timeout);
        let file = spawn_blocking(move || SqliteFile::open(&path, timeout)).await??;
        Ok(self.0.insert(file).clone())
    }
}
