//! Each section with commands says here which check runs them, or why none does.
//!
//! A block of commands is indented. The fenced `sh` blocks of `docs/api.md` are run by `process/guide.rs`.

use std::{collections::BTreeMap, fs, path::PathBuf};

use Commands::{NoCommand, NotRun, RunBy};

use crate::texts::{anchor, documents, root};

/// Who runs the commands of a section.
enum Commands {
    /// These checks: paths, or names of files of `process`.
    RunBy(&'static [&'static str]),
    /// No check, for this reason.
    NotRun(&'static str),
    /// The blocks have settings or output, and no command.
    NoCommand,
}

/// A section with blocks, as a link names it.
struct Section(&'static str, Commands);

const SECTIONS: [Section; 39] = [
    Section(
        "README.md#run-it",
        RunBy(&[
            "quickstart.rs",
            "keys.rs",
            "copy_store.rs",
            "doctor.rs",
            "scripts/check-package",
        ]),
    ),
    Section(
        "README.md#move-up",
        RunBy(&["copy_store.rs", "postgres.rs"]),
    ),
    Section("README.md#check-it", RunBy(&[".ci/run"])),
    Section(
        "CONTRIBUTING.md#set-up",
        RunBy(&[".ci/run", "scripts/nightly"]),
    ),
    Section("docs/api.md#rate-limits", NoCommand),
    Section("docs/api.md#generated-clients", RunBy(&["command_line.rs"])),
    Section("docs/configuration.md#configuration", NoCommand),
    Section(
        "docs/deployment.md#one-machine-with-the-debian-package",
        RunBy(&["scripts/check-package", "keys.rs"]),
    ),
    Section(
        "docs/deployment.md#the-address",
        RunBy(&["scripts/check-package"]),
    ),
    Section("docs/deployment.md#the-unit", NoCommand),
    Section(
        "docs/deployment.md#tarball",
        RunBy(&["scripts/check-package"]),
    ),
    Section(
        "docs/deployment.md#rpm",
        NotRun("it needs dnf; scripts/check-package installs the RPM on Debian"),
    ),
    Section(
        "docs/deployment.md#behind-a-proxy-on-one-machine",
        NoCommand,
    ),
    Section(
        "docs/deployment.md#several-machines",
        RunBy(&["postgres.rs"]),
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
        RunBy(&["pets_import.rs"]),
    ),
    Section("docs/operations/keys.md#a-key-leaked", RunBy(&["keys.rs"])),
    Section("docs/operations/keys.md#commands", RunBy(&["keys.rs"])),
    Section("docs/operations/network.md#tls", RunBy(&["tls.rs"])),
    Section("docs/operations/network.md#memory", NoCommand),
    Section(
        "docs/operations/postgresql.md#users-of-postgresql",
        RunBy(&[
            "postgres.rs",
            "crates/adapters-postgres/tests/postgres/keys_revocations.rs",
        ]),
    ),
    Section(
        "docs/operations/redis.md#how-long-a-revoked-key-is-accepted",
        NotRun("it is for a machine without the program"),
    ),
    Section(
        "docs/operations/redis.md#users-of-redis",
        RunBy(&["redis.rs"]),
    ),
    Section("docs/operations/redis.md#sentinel", NoCommand),
    Section("docs/operations/run.md#live-and-ready", NoCommand),
    Section("docs/operations/run.md#animal-store-doctor", NoCommand),
    Section("docs/operations/run.md#traces", RunBy(&["traces.rs"])),
    Section(
        "docs/operations/sqlite.md#sqlite-pets-and-api-keys-in-one-file",
        RunBy(&["sqlite.rs"]),
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
    let arguments = block.lines().filter_map(|line| {
        let start = ["animal-store ", "cargo run -- "];
        start
            .iter()
            .find_map(|start| Some(line.rsplit_once(start)?.1))
    });
    let first = arguments.filter_map(|arguments| arguments.split_whitespace().next());
    first.filter(|word| word.starts_with(|letter: char| letter.is_ascii_lowercase()))
}

/// Asserts that the checks of a section exist, and use each command of the program that it shows.
#[track_caller]
fn assert_runs(section: &str, checks: &[&str], block: &str) {
    let read = |check: &&str| {
        let folder = if check.contains('/') {
            ""
        } else {
            "crates/server/tests/process"
        };
        let text = fs::read_to_string(root().join(folder).join(check));
        text.unwrap_or_else(|error| panic!("{section}: {check}: {error}"))
    };
    let texts: Vec<_> = checks.iter().map(read).collect();
    for command in commands(block) {
        let is_run = texts.iter().any(|text| text.contains(command));
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
    for Section(section, commands) in &SECTIONS {
        let block = found.remove(*section);
        let block = block.unwrap_or_else(|| panic!("{section} has no block"));
        match commands {
            RunBy(checks) => assert_runs(section, checks, &block),
            NotRun(reason) => assert_ne!(*reason, "", "{section}"),
            NoCommand => assert_eq!(self::commands(&block).next(), None, "{section}"),
        }
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

#[test]
fn a_block_belongs_to_the_section_above_it() {
    let text = "# One\n\n    cargo run -- keys list\n    # text\n\n## Two: a list\n\n- item\n    continued\n\n\
                ## Three\n\n```\n\n    fenced\n```\n";
    let found = blocks(text);
    assert_eq!(found.keys().collect::<Vec<_>>(), ["one"]);
    assert_eq!(commands(&found["one"]).collect::<Vec<_>>(), ["keys"]);
}
