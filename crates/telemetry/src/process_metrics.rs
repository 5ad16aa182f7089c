//! Metrics of the process and of its log: the section "Process" of `docs/metrics.md`.
//!
//! They are read at each scrape, so that they cost nothing between two scrapes. If a value cannot be read, for example
//! because no file descriptor is left, the response has all others.

use std::{fmt, time::Duration};

use procfs::{ProcResult, boot_time_secs, page_size, process::Process, ticks_per_second};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{
        counter::{ConstCounter, Counter},
        gauge::ConstGauge,
    },
    registry::Registry,
};
use rlimit::Resource;

use crate::Build;

/// Registers the metrics of the process. Returns the registry for all other metrics, which adds the prefix
/// `animal_store`. Names that begin with `process_` have no other prefix.
pub fn register(
    registry: &mut Registry,
    build: Build,
    dropped_log_lines: Counter,
) -> &mut Registry {
    // Without the file system `/proc`, these metrics are missing.
    if let Ok((process, start_time)) = open() {
        let help = "Start of the process, in seconds since 1970 in UTC";
        registry.register(
            "process_start_time_seconds",
            help,
            ConstGauge::new(start_time.as_secs_f64()),
        );
        registry.register_collector(Box::new(ProcessCollector(process)));
    }
    let prefixed = registry.sub_registry_with_prefix("animal_store");
    let build = [
        ("version".into(), build.version.into()),
        ("commit".into(), build.commit.into()),
    ];
    prefixed
        .sub_registry_with_labels(build.into_iter())
        .register(
            "build_info",
            "Always 1; the version of the program, and the commit of its build",
            ConstGauge::new(1_i64),
        );
    let help = "Lines of the log that were dropped because their reader was too slow";
    prefixed.register("log_lines_dropped", help, dropped_log_lines);
    prefixed
}

/// Reads the folder of the process in `/proc`, which stays open.
#[derive(Debug)]
struct ProcessCollector(Process);

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut add = |name: &str, help: &str, metric: &dyn EncodeMetric| {
            metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
        };
        if let Ok(stat) = self.0.stat() {
            let cpu = duration(stat.utime + stat.stime).as_secs_f64();
            let help = "CPU time of the process in user and system mode.";
            add("process_cpu_seconds", help, &ConstCounter::new(cpu))?;
            let resident = ConstGauge::new(stat.rss * page_size());
            add(
                "process_resident_memory_bytes",
                "Resident memory of the process.",
                &resident,
            )?;
        }
        if let Ok(count) = self.0.fd_count() {
            add(
                "process_open_fds",
                "Open file descriptors of the process.",
                &ConstGauge::new(count as u64),
            )?;
        }
        if let Ok(limit) = Resource::NOFILE.get_soft() {
            add(
                "process_max_fds",
                "Limit of open file descriptors of the process.",
                &ConstGauge::new(limit),
            )?;
        }
        Ok(())
    }
}

/// Returns the process, and its start since 1970.
fn open() -> ProcResult<(Process, Duration)> {
    let process = Process::myself()?;
    let start_time = Duration::from_secs(boot_time_secs()?) + duration(process.stat()?.starttime);
    Ok((process, start_time))
}

fn duration(ticks: u64) -> Duration {
    Duration::from_millis(ticks * 1000 / ticks_per_second())
}

#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        time::{SystemTime, UNIX_EPOCH},
    };

    use animal_store_test_servers::sample;
    use prometheus_client::encoding::text::encode;

    use super::*;

    const BUILD: Build = Build {
        version: "1.2.3",
        commit: "4375996f2",
    };

    /// The exposition of the metrics, with this number of dropped lines.
    fn exposition(dropped_lines: u64) -> String {
        let mut registry = Registry::default();
        let dropped = Counter::default();
        register(&mut registry, BUILD, dropped.clone());
        dropped.inc_by(dropped_lines);
        let mut text = String::new();
        encode(&mut text, &registry).expect("a String does not fail");
        text
    }

    #[test]
    fn the_values_of_the_process_are_those_of_the_kernel() {
        // Other tests of this process open some as well.
        let _files = [(); 200].map(|()| File::open("/dev/null").expect("a file"));
        let text = exposition(3);

        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.expect("after 1970").as_secs_f64();
        let age = now - sample::<f64>(&text, "process_start_time_seconds");
        assert!((-2.0..600.0).contains(&age), "{age}");
        let resident: u64 = sample(&text, "process_resident_memory_bytes");
        let memory = Process::myself().and_then(|process| process.statm());
        let listed = memory.expect("the memory of this process").resident * page_size();
        assert!((resident / 2..resident * 2).contains(&listed), "{resident}");
        let limit = Resource::NOFILE.get_soft().expect("a limit");
        assert_eq!(sample::<u64>(&text, "process_max_fds"), limit);
        let open: usize = sample(&text, "process_open_fds");
        assert!((200..1000).contains(&open), "{open}");
        let build = r#"animal_store_build_info{version="1.2.3",commit="4375996f2"}"#;
        assert_eq!(sample::<u64>(&text, build), 1);
        let dropped = "animal_store_log_lines_dropped_total";
        assert_eq!(sample::<u64>(&text, dropped), 3);
    }

    #[test]
    fn cpu_time_is_that_of_the_kernel() {
        let kernel = || {
            let stat = Process::myself().and_then(|process| process.stat());
            let stat = stat.expect("the state of this process");
            [stat.utime, stat.stime]
        };
        // Each call takes some time in both modes.
        let mut times = (0..100_000).map(|_| kernel());
        let earlier = times.find(|modes| modes.iter().all(|ticks| *ticks > 0));
        let earlier = earlier.expect("ticks in both modes");
        let shown: f64 = sample(&exposition(0), "process_cpu_seconds_total");
        let [earlier, later] = [earlier, kernel()].map(|modes| duration(modes.iter().sum()));
        let expected = earlier.as_secs_f64()..=later.as_secs_f64();
        assert!(expected.contains(&shown), "{expected:?} {shown}");
        let ticks = ticks_per_second() * 5 / 2;
        assert_eq!(duration(ticks), Duration::from_millis(2500));
    }
}
