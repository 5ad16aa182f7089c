//! The hexagon, held: which crate may depend on which.
//!
//! A crate that is not listed fails until someone gives it a rule. `deny.toml` says the same of external crates that
//! belong to one adapter.

use std::{collections::BTreeSet, process::Command};

use serde_json::Value;

const PREFIX: &str = "animal-store-";

/// Each crate with the crates of ours that it may depend on.
const ALLOWED: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("app", &["domain"]),
    ("adapters-http", &["app", "domain"]),
    ("adapters-memory", &["app", "domain"]),
    ("adapters-postgres", &["app", "domain"]),
    ("adapters-redis", &["app", "domain"]),
    ("test-servers", &[]),
    ("server", &["adapters-http", "adapters-memory", "adapters-postgres", "adapters-redis", "app", "domain"]),
];

/// The crates that hold the rules, with all that they may take from outside.
const ALLOWED_EXTERNAL: &[(&str, &[&str])] = &[
    ("domain", &["thiserror"]),
    // mockall and tokio only behind the feature `test-support`.
    ("app", &["async-trait", "crc32fast", "mockall", "secrecy", "sha2", "thiserror", "tokio"]),
];

struct Dependency {
    from: String,
    to: String,
    optional: bool,
    features: String,
}

/// The normal and build dependencies of the workspace: tests may use what they like.
fn dependencies() -> (BTreeSet<String>, Vec<Dependency>) {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version=1", "--offline", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"))
        .output()
        .expect("cargo metadata");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");

    let mut crates = BTreeSet::new();
    let mut dependencies = Vec::new();
    for package in metadata["packages"].as_array().expect("packages") {
        let from = package["name"].as_str().expect("a name").to_owned();
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            if dependency["kind"] != "dev" {
                dependencies.push(Dependency {
                    from: from.clone(),
                    to: dependency["name"].as_str().expect("a name").to_owned(),
                    optional: dependency["optional"] == true,
                    features: dependency["features"].to_string(),
                });
            }
        }
        crates.insert(from);
    }
    (crates, dependencies)
}

fn rule<'a>(rules: &'a [(&str, &'a [&'a str])], name: &str) -> Option<&'a [&'a str]> {
    rules.iter().find(|(rule, _)| name.strip_prefix(PREFIX) == Some(rule)).map(|&(_, allowed)| allowed)
}

#[test]
fn every_crate_has_a_rule_and_every_rule_a_crate() {
    let (crates, _) = dependencies();
    let ruled: BTreeSet<String> = ALLOWED.iter().map(|(name, _)| format!("{PREFIX}{name}")).collect();
    assert_eq!(crates, ruled);
}

#[test]
fn dependencies_between_our_crates_point_inward() {
    for Dependency { from, to, .. } in dependencies().1 {
        if let Some(inner) = to.strip_prefix(PREFIX) {
            let allowed = rule(ALLOWED, &from).unwrap_or_default();
            assert!(allowed.contains(&inner), "{from} must not depend on {to}");
        }
    }
}

#[test]
fn the_crates_that_hold_the_rules_take_little_from_outside() {
    for Dependency { from, to, .. } in dependencies().1.iter().filter(|edge| !edge.to.starts_with(PREFIX)) {
        if let Some(allowed) = rule(ALLOWED_EXTERNAL, from) {
            assert!(allowed.contains(&to.as_str()), "{from} must not depend on {to}");
        }
    }
}

#[test]
fn mocks_and_runtimes_are_for_tests_alone() {
    for Dependency { from, to, optional, features } in dependencies().1 {
        let for_tests =
            to == "mockall" || to == format!("{PREFIX}test-servers") || to == "tokio" && from == format!("{PREFIX}app");
        assert!(!for_tests || optional, "{from} depends on {to} outside of tests");
        assert!(!features.contains("test-support"), "{from} takes the mocks of {to} outside of tests");
    }
}
