//! Rules for the dependencies between the crates of the workspace, which point inward.
//!
//! A crate without a rule fails the test. `deny.toml` has the rules for external crates that belong to one adapter.

use std::{collections::BTreeSet, process::Command, sync::LazyLock};

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
    ("adapters-postgres", &["adapter-kit", "app", "domain"]),
    ("adapters-redis", &["adapter-kit", "app", "domain"]),
    ("adapters-sqlite", &["adapter-kit", "app", "domain"]),
    ("http1", &[]),
    ("pet-json", &["domain"]),
    ("schedules", &[]),
    ("settings", &[]),
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

struct Workspace {
    crates: BTreeSet<String>,
    /// Outside of tests.
    dependencies: Vec<Dependency>,
}

struct Dependency {
    from: String,
    to: String,
    optional: bool,
    features: String,
}

static WORKSPACE: LazyLock<Workspace> = LazyLock::new(|| {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--format-version=1",
            "--offline",
            "--manifest-path",
        ])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"))
        .output()
        .expect("cargo metadata");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
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
    let is_known =
        |edge: &Dependency| edge.from == "animal-store-server" && edge.to == "animal-store-app";
    assert!(
        dependencies.iter().any(is_known),
        "the dependency of server on app is missing"
    );
    Workspace {
        crates,
        dependencies,
    }
});

fn rule<'a>(rules: &'a [(&str, &'a [&'a str])], name: &str) -> Option<&'a [&'a str]> {
    rules
        .iter()
        .find(|(rule, _)| name.strip_prefix(PREFIX) == Some(rule))
        .map(|&(_, allowed)| allowed)
}

#[test]
fn every_crate_has_a_rule_and_every_rule_a_crate() {
    let ruled: BTreeSet<String> = ALLOWED
        .iter()
        .map(|(name, _)| format!("{PREFIX}{name}"))
        .collect();
    assert_eq!(WORKSPACE.crates, ruled);
}

#[test]
fn dependencies_between_crates_of_the_workspace_point_inward() {
    for Dependency { from, to, .. } in &WORKSPACE.dependencies {
        if let Some(inner) = to.strip_prefix(PREFIX) {
            let allowed = rule(ALLOWED, from).unwrap_or_default();
            assert!(allowed.contains(&inner), "{from} must not depend on {to}");
        }
    }
}

#[test]
fn the_inner_crates_have_few_external_dependencies() {
    for Dependency { from, to, .. } in WORKSPACE
        .dependencies
        .iter()
        .filter(|edge| !edge.to.starts_with(PREFIX))
    {
        if let Some(allowed) = rule(ALLOWED_EXTERNAL, from) {
            assert!(
                allowed.contains(&to.as_str()),
                "{from} must not depend on {to}"
            );
        }
    }
}

#[test]
fn only_tests_use_mocks_and_the_runtime_of_app() {
    for Dependency {
        from,
        to,
        optional,
        features,
    } in &WORKSPACE.dependencies
    {
        let for_tests = ["mockall", "proptest", &format!("{PREFIX}test-servers")]
            .contains(&to.as_str())
            || to == "tokio" && *from == format!("{PREFIX}app");
        assert!(
            !for_tests || *optional,
            "{from} depends on {to} outside of tests"
        );
        assert!(
            !features.contains("test-support"),
            "{from} uses the mocks of {to} outside of tests"
        );
    }
}
