use std::{fmt, sync::Weak};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::gauge::ConstGauge,
};

use super::{Disk, OpenFile, SqliteFile, log_bytes};

/// The state of the file and the space on its disk, which each scrape reads. What cannot be read is missing in the
/// response. This does not keep the file open.
#[derive(Debug)]
pub(super) struct FileMetrics(pub(super) Weak<OpenFile>);

impl Collector for FileMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(file) = self.0.upgrade().map(SqliteFile) else {
            return Ok(());
        };
        let path = file.path();
        let disk = Disk::of(path).ok();
        let gauges = [
            (
                "file_in_place",
                "1 while storage.sqlite.path names the file that was opened; 0: creates and lookups get 503",
                Some(file.check_in_place().is_ok().into()),
            ),
            (
                "file_bytes",
                "Size of the SQLite file, without its log",
                path.metadata().ok().map(|file| file.len()),
            ),
            (
                "log_bytes",
                "Size of the log (-wal) of the SQLite file",
                Some(log_bytes(path)),
            ),
            (
                "disk_free_bytes",
                "Free space on the disk of the SQLite file",
                disk.as_ref().map(|disk| disk.free),
            ),
            (
                "disk_reserve_bytes",
                "Free space below which creates get 503",
                disk.as_ref().map(|disk| disk.reserve),
            ),
        ];
        for (name, help, value) in gauges {
            if let Some(gauge) = value.map(ConstGauge::<u64>::new) {
                let metric_type = gauge.metric_type();
                gauge.encode(encoder.encode_descriptor(name, help, None, metric_type)?)?;
            }
        }
        Ok(())
    }
}
