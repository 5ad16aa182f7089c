use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use prometheus_client::encoding::{MetricEncoder, NoLabelSet};

/// Upper bounds of the buckets in microseconds. One more bucket has no bound.
const BOUNDS: [u64; 14] =
    [250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000];

/// Histogram of durations, without a lock.
#[derive(Debug, Default)]
pub(super) struct Durations {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
}

impl Durations {
    pub(super) fn add(&self, duration: Duration) {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.iter().position(|bound| nanoseconds <= bound * 1000).unwrap_or(BOUNDS.len());
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// Encodes the sum of histograms.
    pub(super) fn encode<'a>(all: impl Iterator<Item = &'a Self>, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let mut sum = Duration::ZERO;
        let bounds = BOUNDS.map(|bound| Duration::from_micros(bound).as_secs_f64()).into_iter().chain([f64::INFINITY]);
        let mut buckets: Vec<_> = bounds.map(|bound| (bound, 0)).collect();
        for durations in all {
            sum += Duration::from_nanos(durations.nanoseconds.load(Ordering::Relaxed));
            for ((_, count), own) in buckets.iter_mut().zip(&durations.buckets) {
                *count += own.load(Ordering::Relaxed);
            }
        }
        let count = buckets.iter().map(|(_, count)| count).sum();
        encoder.encode_histogram::<NoLabelSet>(sum.as_secs_f64(), count, &buckets, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_in_the_first_bucket_whose_bound_it_does_not_exceed() {
        for (duration, bucket) in [
            (Duration::ZERO, 0),
            (Duration::from_micros(250), 0),
            (Duration::from_nanos(250_001), 1),
            (Duration::from_millis(1), 2),
            (Duration::from_secs(5), 13),
            (Duration::from_nanos(5_000_000_001), 14),
            (Duration::MAX, 14),
        ] {
            let durations = Durations::default();
            durations.add(duration);
            let filled = durations.buckets.iter().position(|count| count.load(Ordering::Relaxed) == 1);
            assert_eq!(filled, Some(bucket), "{duration:?}");
        }
    }
}
