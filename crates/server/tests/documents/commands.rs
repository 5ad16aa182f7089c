//! Each section with commands says here which check runs them, or why none does.
//!
//! A block of commands is indented. The fenced `sh` blocks of `docs/api.md` are run by `process/guide.rs`.

use std::{collections::BTreeSet, path::PathBuf};

use Commands::{NoCommand, NotRun, RunBy};

use crate::texts::{anchor, documents, root};

/// Who runs the commands of a section.
enum Commands {
    /// These checks.
    RunBy(&'static [&'static str]),
    /// No check, for this reason.
    NotRun(&'static str),
    /// The blocks have settings or output, and no command.
    NoCommand,
}

/// A section with blocks, as a link names it.
struct Section(&'static str, Commands);

const SECTIONS: [Section; 37] = [
    Section(
        "README.md#run-it",
        RunBy(&[
            "crates/server/tests/process/quickstart.rs",
            "crates/server/tests/process/keys.rs",
            "crates/server/tests/process/copy_store.rs",
            "crates/server/tests/process/doctor.rs",
            "scripts/check-package",
        ]),
    ),
    Section(
        "README.md#move-up",
        RunBy(&["crates/server/tests/process/copy_store.rs"]),
    ),
    Section("README.md#check-it", RunBy(&[".ci/run"])),
    Section(
        "CONTRIBUTING.md#set-up",
        RunBy(&[".ci/run", "scripts/nightly"]),
    ),
    Section("docs/api.md#rate-limits", NoCommand),
    Section(
        "docs/api.md#generated-clients",
        RunBy(&["crates/server/tests/process/command_line.rs"]),
    ),
    Section("docs/configuration.md#configuration", NoCommand),
    Section(
        "docs/deployment.md#one-machine-with-the-debian-package",
        RunBy(&["scripts/check-package"]),
    ),
    Section(
        "docs/deployment.md#the-address",
        RunBy(&["scripts/check-package"]),
    ),
    Section("docs/deployment.md#the-unit", NoCommand),
    Section(
        "docs/deployment.md#behind-a-proxy-on-one-machine",
        NoCommand,
    ),
    Section(
        "docs/deployment.md#several-machines",
        RunBy(&["crates/server/tests/process/postgres.rs"]),
    ),
    Section(
        "docs/deployment.md#containers",
        NotRun("it needs a container engine; scripts/harness/trial.py runs the files of the image"),
    ),
    Section(
        "docs/deployment.md#composeyaml",
        NotRun("it needs a container engine; scripts/harness/trial.py runs the instances"),
    ),
    Section(
        "docs/deployment.md#kubernetes",
        NotRun("it needs a cluster; scripts/check-deploy builds the folders"),
    ),
    Section("docs/logging.md#volume", NoCommand),
    Section(
        "docs/operations/backup.md#every-night",
        NotRun("the link is for a node_exporter of Debian"),
    ),
    Section(
        "docs/operations/backup.md#restore",
        RunBy(&[
            "scripts/check-package",
            "scripts/harness/deploy_scripts_test.py",
        ]),
    ),
    Section(
        "docs/operations/backup.md#export-and-import",
        RunBy(&["crates/server/tests/process/pets_import.rs"]),
    ),
    Section(
        "docs/operations/keys.md#a-key-leaked",
        RunBy(&["crates/server/tests/process/keys.rs"]),
    ),
    Section(
        "docs/operations/keys.md#commands",
        RunBy(&["crates/server/tests/process/keys.rs"]),
    ),
    Section(
        "docs/operations/network.md#tls",
        RunBy(&["crates/server/tests/process/tls.rs"]),
    ),
    Section("docs/operations/network.md#memory", NoCommand),
    Section(
        "docs/operations/postgresql.md#users-of-postgresql",
        RunBy(&[
            "crates/server/tests/process/postgres.rs",
            "crates/adapters-postgres/tests/postgres/keys_revocations.rs",
        ]),
    ),
    Section(
        "docs/operations/redis.md#how-long-a-revoked-key-is-accepted",
        NotRun("it is for a machine without the program"),
    ),
    Section(
        "docs/operations/redis.md#users-of-redis",
        RunBy(&["crates/server/tests/process/redis.rs"]),
    ),
    Section("docs/operations/redis.md#sentinel", NoCommand),
    Section("docs/operations/run.md#live-and-ready", NoCommand),
    Section("docs/operations/run.md#animal-store-doctor", NoCommand),
    Section(
        "docs/operations/run.md#traces",
        RunBy(&["crates/server/tests/process/traces.rs"]),
    ),
    Section(
        "docs/operations/sqlite.md#sqlite-pets-and-api-keys-in-one-file",
        RunBy(&["crates/server/tests/process/sqlite.rs"]),
    ),
    Section(
        "docs/operations/sqlite.md#what-happens-when-the-file-",
        NotRun("sqlite3 repairs what it can read of a damaged file"),
    ),
    Section(
        "docs/operations/upgrading.md#before-anything-is-replaced",
        RunBy(&["scripts/upgrade"]),
    ),
    Section(
        "docs/operations/upgrading.md#replacing-it",
        RunBy(&["scripts/upgrade"]),
    ),
    Section(
        "docs/operations/upgrading.md#a-database-that-was-replicated-or-restored",
        RunBy(&["crates/adapters-postgres/tests/postgres/sequence.rs"]),
    ),
    Section("docs/reliability.md#soak", RunBy(&["scripts/check"])),
    Section(
        "crates/adapters-postgres/migrations/README.md#trying-a-migration",
        RunBy(&["scripts/check"]),
    ),
];

fn is_run_or_excused(commands: &Commands) -> bool {
    match commands {
        RunBy(checks) => checks.iter().all(|check| root().join(check).is_file()),
        NotRun(reason) => !reason.is_empty(),
        NoCommand => true,
    }
}

/// Returns the anchors of the sections that have an indented block.
fn sections_with_blocks(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut section = String::new();
    let mut is_fenced = false;
    let mut previous = "";
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced && line.starts_with('#') {
            section = anchor(line);
        } else if !is_fenced && line.starts_with("    ") && previous.is_empty() {
            found.insert(section.clone());
        }
        previous = line;
    }
    found
}

#[test]
fn the_commands_of_each_section_are_run_by_a_check_or_listed_with_a_reason() {
    let mut found = BTreeSet::new();
    for (document, text) in documents() {
        let sections = sections_with_blocks(&text);
        found.extend(
            sections
                .iter()
                .map(|section| format!("{}#{section}", document.display())),
        );
    }
    let listed = SECTIONS
        .iter()
        .map(|Section(section, _)| (*section).to_owned());
    assert_eq!(listed.collect::<BTreeSet<_>>(), found);
    for Section(section, commands) in &SECTIONS {
        assert!(is_run_or_excused(commands), "{section}");
    }
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

#[test]
fn a_block_belongs_to_the_section_above_it() {
    let text = "# One\n\n    command\n\n## Two: a list\n\n- item\n    continued\n\n## Three\n\n```\n\n    fenced\n```\n";
    let found = sections_with_blocks(text);
    assert_eq!(found, BTreeSet::from(["one".to_owned()]));
}
