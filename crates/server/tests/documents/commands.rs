//! Each section with commands says here which check runs them, or why none does.
//!
//! A block of commands is indented. The fenced `sh` blocks of `docs/api.md` are run by `process/guide.rs`.

use std::{collections::BTreeMap, fs, path::PathBuf};

use crate::texts::{anchor, documents, root};

/// Sections, and the checks that run their commands: paths, or names of files of `process`.
const RUN_BY: [(&str, &[&str]); 23] = [
    (
        "README.md#run-it",
        &[
            "quickstart.rs",
            "keys.rs",
            "copy_store.rs",
            "doctor.rs",
            "scripts/check-package",
        ],
    ),
    ("README.md#move-up", &["copy_store.rs", "postgres.rs"]),
    ("README.md#check-it", &[".ci/run"]),
    ("CONTRIBUTING.md#set-up", &[".ci/run", "scripts/nightly"]),
    ("docs/api.md#generated-clients", &["command_line.rs"]),
    (
        "docs/deployment.md#one-machine-with-the-debian-package",
        &["scripts/check-package", "keys.rs"],
    ),
    ("docs/deployment.md#the-address", &["scripts/check-package"]),
    ("docs/deployment.md#tarball", &["scripts/check-package"]),
    ("docs/deployment.md#several-machines", &["postgres.rs"]),
    (
        "docs/operations/backup.md#restore",
        &[
            "scripts/check-package",
            "scripts/harness/deploy_scripts_test.py",
        ],
    ),
    (
        "docs/operations/backup.md#export-and-import",
        &["pets_import.rs"],
    ),
    ("docs/operations/keys.md#a-key-leaked", &["keys.rs"]),
    ("docs/operations/keys.md#commands", &["keys.rs"]),
    ("docs/operations/network.md#tls", &["tls.rs"]),
    (
        "docs/operations/postgresql.md#users-of-postgresql",
        &[
            "postgres.rs",
            "crates/adapters-postgres/tests/postgres/keys_revocations.rs",
        ],
    ),
    ("docs/operations/redis.md#users-of-redis", &["redis.rs"]),
    ("docs/operations/run.md#traces", &["traces.rs"]),
    (
        "docs/operations/sqlite.md#sqlite-pets-and-api-keys-in-one-file",
        &["sqlite.rs"],
    ),
    (
        "docs/operations/upgrading.md#before-anything-is-replaced",
        &["scripts/upgrade"],
    ),
    (
        "docs/operations/upgrading.md#replacing-it",
        &["scripts/upgrade"],
    ),
    (
        "docs/operations/upgrading.md#a-database-that-was-replicated-or-restored",
        &["crates/adapters-postgres/tests/postgres/sequence.rs"],
    ),
    ("docs/reliability.md#soak", &["scripts/check"]),
    (
        "crates/adapters-postgres/migrations/README.md#trying-a-migration",
        &["scripts/check"],
    ),
];

/// Sections whose commands no check runs, and the reason.
const NOT_RUN: [(&str, &str); 7] = [
    (
        "docs/deployment.md#rpm",
        "it needs dnf; scripts/check-package installs the RPM on Debian",
    ),
    (
        "docs/deployment.md#containers",
        "it needs a container engine; scripts/harness/trial.py runs the files of the image",
    ),
    (
        "docs/deployment.md#composeyaml",
        "it needs a container engine; scripts/harness/trial.py runs the instances",
    ),
    (
        "docs/deployment.md#kubernetes",
        "it needs a cluster; scripts/check-deploy builds the folders",
    ),
    (
        "docs/operations/backup.md#every-night",
        "the link is for a node_exporter of Debian",
    ),
    (
        "docs/operations/redis.md#how-long-a-revoked-key-is-accepted",
        "it is for a machine without the program",
    ),
    (
        "docs/operations/sqlite.md#what-happens-when-the-file-",
        "sqlite3 repairs what it can read of a damaged file",
    ),
];

/// Sections whose blocks have settings or output, and no command.
const WITHOUT_COMMANDS: [&str; 9] = [
    "docs/api.md#rate-limits",
    "docs/configuration.md#configuration",
    "docs/deployment.md#the-unit",
    "docs/deployment.md#behind-a-proxy-on-one-machine",
    "docs/logging.md#volume",
    "docs/operations/network.md#memory",
    "docs/operations/redis.md#sentinel",
    "docs/operations/run.md#live-and-ready",
    "docs/operations/run.md#animal-store-doctor",
];

/// Returns the texts of the indented blocks of each section, by its anchor.
fn blocks(text: &str) -> BTreeMap<String, String> {
    let mut blocks: BTreeMap<String, String> = BTreeMap::new();
    let mut section = String::new();
    let mut is_fenced = false;
    let mut is_block = false;
    let mut previous = "";
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced && line.starts_with('#') {
            section = anchor(line);
        }
        let is_indented = !is_fenced && line.starts_with("    ");
        is_block = is_indented && (is_block || previous.is_empty());
        if is_block {
            let text = blocks.entry(section.clone()).or_default();
            text.push_str(line);
            text.push('\n');
        }
        previous = line;
    }
    blocks
}

/// Returns the commands of the program in a block, such as `keys`.
fn commands(block: &str) -> impl Iterator<Item = &str> {
    let starts = ["animal-store ", "cargo run -- "];
    let arguments = block.lines().filter_map(move |line| {
        let mut ends = starts.iter().filter_map(|start| line.rsplit_once(start));
        Some(ends.next()?.1)
    });
    let first = arguments.filter_map(|arguments| arguments.split_whitespace().next());
    first.filter(|word| word.starts_with(|letter: char| letter.is_ascii_lowercase()))
}

/// Asserts that the checks of a section exist, and use each command of the program that it shows.
#[track_caller]
fn assert_runs(section: &str, checks: &[&str], block: &str) {
    let mut texts = String::new();
    for check in checks {
        let mut path = root();
        if !check.contains('/') {
            path.push("crates/server/tests/process");
        }
        let text = fs::read_to_string(path.join(check));
        texts += &text.unwrap_or_else(|error| panic!("{section}: {check}: {error}"));
    }
    for command in commands(block) {
        let is_run = texts.contains(command);
        assert!(is_run, "{section}: no check runs {command}");
    }
}

#[test]
fn the_commands_of_each_section_are_run_by_a_check_or_listed_with_a_reason() {
    let mut found = BTreeMap::new();
    for (document, text) in documents() {
        let named = |(section, block)| (format!("{}#{section}", document.display()), block);
        found.extend(blocks(&text).into_iter().map(named));
    }
    let mut take = |section: &str| {
        let block = found.remove(section);
        block.unwrap_or_else(|| panic!("{section} has no block"))
    };
    for (section, checks) in RUN_BY {
        assert_runs(section, checks, &take(section));
    }
    for (section, reason) in NOT_RUN {
        take(section);
        assert_ne!(reason, "", "{section}");
    }
    for section in WITHOUT_COMMANDS {
        assert_eq!(commands(&take(section)).next(), None, "{section}");
    }
    let missing: Vec<_> = found.keys().collect();
    assert!(missing.is_empty(), "sections without a row: {missing:?}");
}

#[test]
fn a_fenced_block_with_commands_is_in_the_guide_alone() {
    let shown = documents().into_iter().filter(|(_, text)| {
        let mut fences = text.split("```").skip(1).step_by(2);
        fences.any(|fence| fence.starts_with("sh\n") || fence.starts_with("console\n"))
    });
    let names: Vec<_> = shown.map(|(document, _)| document).collect();
    assert_eq!(names, [PathBuf::from("docs/api.md")]);
}
