//! `docs/metrics.md` lists exactly the metrics of services with PostgreSQL and Redis, with TLS, and with a file.

use std::collections::{BTreeMap, BTreeSet};

use animal_store_test_servers::{HttpClient, PgDatabase, RedisSpace};

use crate::{program::Program, tls};

const DOCUMENTATION: &str = include_str!("../../../../docs/metrics.md");

/// A family of metrics.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Family {
    kind: String,
    labels: BTreeSet<String>,
    help: String,
}

/// A metric has several rows if its meaning depends on the backend.
fn documented() -> BTreeSet<(String, Family)> {
    let rows = DOCUMENTATION.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, kind, labels, help] = cells[..] else { panic!("not four cells: {row}") };
        let labels = labels.split(',').map(|label| label.trim().trim_matches('`').to_owned());
        let labels = labels.filter(|label| !label.is_empty()).collect();
        (name.trim_matches('`').to_owned(), Family { kind: kind.to_owned(), labels, help: help.to_owned() })
    })
    .collect()
}

/// The families of a response in the text format of Prometheus.
fn families(text: &str) -> BTreeMap<String, Family> {
    let mut families = BTreeMap::<String, Family>::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a name and a help");
            name.clone_into(&mut current);
            let help = help.trim_end_matches('.').to_owned();
            let family = Family { help, ..Family::default() };
            assert!(families.insert(current.clone(), family).is_none(), "{name} is given twice");
            continue;
        }
        let family = families.get_mut(&current).expect("a family begins with its help");
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a name and a type");
            assert_eq!(name, current);
            kind.clone_into(&mut family.kind);
        } else if let Some((_, labels)) = line.split_once('{') {
            let labels = labels.split("\",").map(|label| label.split('=').next().expect("a name").to_owned());
            family.labels.extend(labels.filter(|label| label != "le"));
        }
    }
    families
}

#[test]
fn the_document_lists_exactly_the_metrics_of_the_service() {
    let (database, space) = (PgDatabase::new(), RedisSpace::new());
    let servers = Program::with_redis(&space)
        .env("ANIMAL_STORE_STORAGE__BACKEND", "postgres")
        .env("ANIMAL_STORE_STORAGE__POSTGRES__URL", database.url());
    let found = [servers, tls::program().0, Program::with_file()].map(|program| {
        let mut running = program.start();
        let response = HttpClient::new(running.management_address()).get("/metrics");
        families(response.assert_status(200).text())
    });

    assert_eq!(found.into_iter().flatten().collect::<BTreeSet<_>>(), documented());
}
