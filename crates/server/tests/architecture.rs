//! Rules for the dependencies between the crates of the workspace, which point inward.
//!
//! A crate without a rule fails the test. `deny.toml` has the rules for external crates that belong to one adapter.

use std::{collections::BTreeSet, process::Command};

use serde_json::Value;

const PREFIX: &str = "animal-store-";

/// Each crate, with the crates of the workspace that it may depend on.
const ALLOWED: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("app", &["domain"]),
    ("adapter-kit", &["app", "domain"]),
    // Of settings, it uses the parsers, so that an option and a setting accept the same durations.
    ("adapters-cli", &["app", "domain", "pet-json", "settings"]),
    ("adapters-http", &["app", "domain", "http1", "pet-json"]),
    ("adapters-memory", &["app", "domain"]),
    (
        "adapters-postgres",
        &["adapter-kit", "app", "domain", "small-files"],
    ),
    ("adapters-redis", &["adapter-kit", "app", "domain"]),
    ("adapters-sqlite", &["adapter-kit", "app", "domain"]),
    ("http1", &["small-files"]),
    ("pet-json", &["domain"]),
    ("schedules", &[]),
    ("settings", &["small-files"]),
    ("small-files", &[]),
    ("telemetry", &[]),
    ("test-servers", &[]),
    (
        "server",
        &[
            "adapter-kit",
            "adapters-cli",
            "adapters-http",
            "adapters-memory",
            "adapters-postgres",
            "adapters-redis",
            "adapters-sqlite",
            "app",
            "http1",
            "settings",
            "telemetry",
        ],
    ),
];

/// The inner crates, with the external crates that they may depend on.
const ALLOWED_EXTERNAL: &[(&str, &[&str])] = &[
    ("domain", &["thiserror"]),
    // mockall, proptest and tokio: only with the feature `test-support`.
    (
        "app",
        &[
            "async-trait",
            "crc32fast",
            "hex",
            "mockall",
            "proptest",
            "secrecy",
            "sha2",
            "thiserror",
            "tokio",
        ],
    ),
];

/// A dependency outside of tests.
struct Dependency {
    from: String,
    to: String,
    is_optional: bool,
    features: String,
}

fn name(of: &Value) -> String {
    of["name"].as_str().expect("a name").to_owned()
}

fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version=1", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo metadata");
    assert!(output.status.success(), "{output:?}");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

fn dependencies() -> Vec<Dependency> {
    let mut found = Vec::new();
    for package in packages() {
        let all = package["dependencies"].as_array().expect("dependencies");
        let outside_of_tests = all.iter().filter(|dependency| dependency["kind"] != "dev");
        found.extend(outside_of_tests.map(|dependency| Dependency {
            from: name(&package),
            to: name(dependency),
            is_optional: dependency["optional"] == true,
            features: dependency["features"].to_string(),
        }));
    }
    let is_known =
        |edge: &Dependency| edge.from == "animal-store-server" && edge.to == "animal-store-app";
    let has_known = found.iter().any(is_known);
    assert!(has_known, "the dependency of server on app is missing");
    found
}

fn rule<'a>(rules: &'a [(&str, &'a [&'a str])], name: &str) -> Option<&'a [&'a str]> {
    let short = name.strip_prefix(PREFIX)?;
    let rule = rules.iter().find(|(rule, _)| *rule == short)?;
    Some(rule.1)
}

#[test]
fn every_crate_has_a_rule_and_every_rule_a_crate() {
    let crates: BTreeSet<_> = packages().iter().map(name).collect();
    let ruled = ALLOWED.iter().map(|(name, _)| format!("{PREFIX}{name}"));
    assert_eq!(crates, ruled.collect());
}

#[test]
fn each_dependency_points_inward_or_is_allowed_for_its_inner_crate() {
    for Dependency { from, to, .. } in dependencies() {
        let allowed = match to.strip_prefix(PREFIX) {
            Some(inner) => rule(ALLOWED, &from).is_some_and(|allowed| allowed.contains(&inner)),
            None => rule(ALLOWED_EXTERNAL, &from).is_none_or(|allowed| allowed.contains(&&*to)),
        };
        assert!(allowed, "{from} must not depend on {to}");
    }
}

#[test]
fn only_tests_use_mocks_and_the_runtime_of_app() {
    let for_tests = ["mockall", "proptest", "animal-store-test-servers"];
    for edge in dependencies() {
        let Dependency { from, to, .. } = &edge;
        let is_runtime = to == "tokio" && from == "animal-store-app";
        let is_for_tests = is_runtime || for_tests.contains(&&**to);
        let is_outside =
            is_for_tests && !edge.is_optional || edge.features.contains("test-support");
        assert!(
            !is_outside,
            "{from} uses {to} or its mocks outside of tests"
        );
    }
}
