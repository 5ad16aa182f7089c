use crate::{
    cli::InvalidConfig,
    config::{Config, StorageConfig},
    wiring::{BulkAccess, BulkStores},
};

/// Refuses a configuration with pets in memory, before any file is read.
///
/// # Errors
/// [`InvalidConfig`] if the pets are in memory.
pub(in crate::cli) fn refuse_memory(config: &Config) -> anyhow::Result<()> {
    if matches!(config.storage, StorageConfig::Memory { .. }) { Err(in_memory().into()) } else { Ok(()) }
}

/// Opens what a configuration keeps.
///
/// # Errors
/// [`InvalidConfig`] if the pets are in memory.
pub(in crate::cli) async fn open_stores(config: Config, access: BulkAccess) -> anyhow::Result<BulkStores> {
    let stores = BulkStores::open(config.storage, &config.keys, access).await?;
    Ok(stores.ok_or_else(in_memory)?)
}

fn in_memory() -> InvalidConfig {
    let text = "storage.backend is memory: only the process that serves has its pets, and another process can neither \
                read nor add any. Set storage.backend to sqlite or postgres";
    InvalidConfig(text.to_owned())
}
