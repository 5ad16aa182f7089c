use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use nix::sys::statvfs::statvfs;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::gauge::ConstGauge,
};

/// The space on the disk of the file, read at each scrape. What cannot be read is missing in the response.
#[derive(Debug)]
pub(super) struct Space(pub(super) PathBuf);

impl Collector for Space {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut add = |name: &str, help: &str, value: io::Result<u64>| match value
            .map(ConstGauge::new)
        {
            Ok(gauge) => {
                gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
            }
            Err(_) => Ok(()),
        };
        add(
            "file_bytes",
            "Size of the SQLite file, without its log",
            self.0.metadata().map(|file| file.len()),
        )?;
        add(
            "disk_free_bytes",
            "Free space on the disk of the SQLite file",
            free_bytes(&self.0),
        )
    }
}

/// Returns the space that this user can still use on the disk of a file.
pub(crate) fn free_bytes(path: &Path) -> io::Result<u64> {
    let disk = statvfs(path)?;
    Ok(disk.blocks_available().saturating_mul(disk.fragment_size()))
}
