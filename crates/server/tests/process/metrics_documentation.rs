//! `docs/metrics.md` lists exactly the metrics of services with PostgreSQL and Redis, with TLS, and with a file.

use std::collections::BTreeSet;

use crate::{prelude::*, tls};

const DOCUMENTATION: &str = include_str!("../../../../docs/metrics.md");

/// The row of a family of metrics, from its lines behind `# HELP`. Only the samples of a counter have its suffix.
fn row(family: &str) -> String {
    let (help, samples) = family.split_once("\n# TYPE ").expect("a help and a type");
    let (name, help) = help.split_once(' ').expect("a name and a help");
    let (kind, samples) = samples.split_once('\n').expect("a type and samples");
    let kind = kind.strip_prefix(name).expect("the same name");
    let first = samples.split(['{', '}']).nth(1).unwrap_or_default();
    let labels = first.split("\",").filter_map(|label| label.split_once('='));
    let names = labels.map(|(name, _)| name).filter(|name| *name != "le");
    let labels: Vec<_> = names.map(|name| format!(" `{name}`")).collect();
    let suffix = if kind == " counter" { "_total" } else { "" };
    format!(
        "| `{name}{suffix}` |{kind} |{} | {} |",
        labels.join(","),
        help.trim_end_matches('.')
    )
}

/// A metric has several rows if its meaning depends on the backend.
#[test]
fn the_document_lists_exactly_the_metrics_of_the_service() {
    let database = PgDatabase::new();
    let redis = RedisServer::start();
    let servers = Program::with_redis(&redis.url())
        .set("storage.backend", "postgres")
        .set("storage.postgres.url", database.url());
    let mut found = BTreeSet::new();
    for program in [servers, tls::program().0, Program::with_file()] {
        let metrics = program.start().management().get("/metrics");
        let rows = metrics.assert_status(200).text().split("# HELP ").skip(1);
        let mut names = BTreeSet::new();
        for row in rows.map(row) {
            assert!(names.insert(row.clone()), "{row} is given twice");
            found.insert(row);
        }
    }

    let documented = DOCUMENTATION.lines().filter(|line| line.starts_with("| `"));
    assert_eq!(found, documented.map(str::to_owned).collect());
}
