//! Which configuration, secret and store the program believes, run as users of the machine that only root can become.
//! `adapter-kit/src/files/tests.rs` has the rules.

mod folder;

use std::{env, fs::OpenOptions};

use nix::unistd::geteuid;

use self::folder::{Folder, become_user, give, owner};
use crate::prelude::*;

const ROOT: u32 = 0;
/// The user of the service.
const STORE: u32 = 65_532;
/// Another user.
const MALLORY: u32 = 4_002;

const CONFIG: &str = "animal-store.toml";
/// Commands that read the configuration.
const COMMANDS: [&str; 8] = [
    "serve",
    "check-config",
    "keys list",
    "keys revoke a",
    "pets export",
    "backup backup.db",
    "migrate",
    "health",
];

/// Returns whether this user cannot make files of other users, which is reported.
fn is_not_root() -> bool {
    let is_root = geteuid().is_root();
    if !is_root {
        report_not_tested("files of other users: only root can make them");
    }
    !is_root
}

/// Adds a line to the file that `NOT_TESTED` names. `scripts/check` ends with these lines.
fn report_not_tested(text: &str) {
    if let Some(path) = env::var_os("NOT_TESTED") {
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).open(path);
        writeln!(file.expect("a list"), "{text}").expect("written");
    }
}

#[test]
fn a_default_configuration_of_another_user_is_refused_by_every_command() {
    if is_not_root() {
        return;
    }
    let folder = Folder::new(ROOT, 0o1777);
    let text = "storage.sqlite.path = 'other.db'\n";
    let config = folder.file(CONFIG, text, MALLORY, 0o644);
    let expected = [config.to_str().unwrap(), "belongs to 4002", "--config"];
    for user in [STORE, ROOT] {
        for line in COMMANDS.into_iter().chain(["doctor"]) {
            folder.run(user, line).assert_refused(2, &expected);
        }
    }
    let named = folder.run(STORE, "check-config --config animal-store.toml");
    named.assert_code(0).assert_has("belongs to 4002");
    for line in ["openapi", "config init", "completions bash"] {
        folder.run(STORE, line).assert_code(0);
    }
}

#[test]
fn a_default_configuration_of_this_user_of_root_or_of_the_owner_of_the_folder_is_read() {
    if is_not_root() {
        return;
    }
    for (folder_owner, folder_mode, owner) in [
        (MALLORY, 0o755, MALLORY),
        (ROOT, 0o1777, STORE),
        // A conffile of Debian.
        (STORE, 0o500, ROOT),
    ] {
        let folder = Folder::new(folder_owner, folder_mode);
        let config = folder.file(CONFIG, "http.workers = 3", owner, 0o640);
        give(&config, owner, STORE, 0o640);
        let checked = folder.run(STORE, "check-config");
        let line = "http.workers = 3 # animal-store.toml, line 1";
        checked.assert_success().assert_has(line);
    }
}

/// Compose, in a clone of a user with the umask 002: the file keeps its owner and its mode in the container.
#[test]
fn a_file_on_a_read_only_mount_is_read_whoever_owns_it() {
    if is_not_root() {
        return;
    }
    let folder = Folder::new(ROOT, 0o755);
    let config = folder.file(CONFIG, "", 1_000, 0o664);
    let path = config.to_str().unwrap();
    let mount = format!("mount --bind {path} {path} && mount -o remount,bind,ro {path}");
    let script = format!("{mount} && exec {} \"$@\"", become_user(STORE, STORE));
    let in_namespace = format!("exec unshare --mount sh -c '{script}' sh \"$@\"");
    let program = Program::in_folder(folder.0.path()).args("check-config");
    let checked = program.run_by_shell(&in_namespace).run();
    let cannot_mount = |line: &String| line.starts_with("unshare: ") || line.starts_with("mount: ");
    if checked.stderr.iter().any(cannot_mount) {
        return report_not_tested("a read-only mount: root cannot mount here");
    }
    checked.assert_success();
    let writable = folder.run(STORE, "check-config");
    writable.assert_refused(2, &["belongs to "]);
}

#[test]
fn a_named_file_a_secret_or_an_authority_of_another_user_is_a_warning_and_a_finding() {
    if is_not_root() {
        return;
    }
    let folder = Folder::new(STORE, 0o755);
    folder.file("foreign.toml", "", MALLORY, 0o644);
    folder.file("tokens", TOKEN, MALLORY, 0o664);
    let authority = Certificates::make(folder.0.path()).authority;
    give(&authority, STORE, STORE, 0o666);
    let host = "postgres://store@postgres.invalid/store?sslmode=verify-full";
    let url = format!("{host}&sslrootcert={}", authority.display());
    let program = |line: &str| {
        let program = folder.program(STORE, STORE, line);
        program
            .args("--config foreign.toml --memory")
            .set("keys.memory.tokens_file", "tokens")
            .set("storage.postgres.url", &url)
    };
    let checked = program("check-config").run();
    let examined = program("doctor").run();
    let mut running = program("serve").start();
    for text in [
        "foreign.toml belongs to 4002, and 65532 runs this process",
        "tokens belongs to 4002",
        "/tokens (mode 664): run as 4002: chmod o-rwx ",
        "(mode 666): run chmod go-w ",
    ] {
        checked.assert_has(text);
        examined.assert_has(text);
        running.wait_for_warning(text);
    }
    folder.file("credential", TOKEN, STORE, 0o400);
    let check = folder.program(STORE, STORE, "check-config");
    let credential = check.set("keys.memory.tokens_file", "credential");
    credential.run().assert_success();
}

#[test]
fn the_configuration_of_a_side_of_a_copy_is_judged_and_its_store_may_belong_to_another_user() {
    if is_not_root() {
        return;
    }
    let folder = Folder::new(MALLORY, 0o755);
    let source = folder.store(MALLORY, MALLORY, 0o644);
    let text = format!("storage.sqlite.path = '{}'\n", source.display());
    for user in [ROOT, STORE] {
        let target = Folder::new(user, 0o700);
        target.file("from.toml", &text, user, 0o622);
        let copied = target.run(user, "copy --from from.toml --to copy.db");
        copied
            .assert_code(0)
            .assert_has("/from.toml (mode 622): run ");
        assert_eq!(owner(&target.path("copy.db")), user);
    }
}

#[test]
fn a_log_of_another_user_is_refused_by_every_command_and_left() {
    if is_not_root() {
        return;
    }
    let folder = Folder::new(ROOT, 0o1777);
    let store = folder.store(STORE, STORE, 0o600);
    let intact = fs::read(&store).expect("a store");
    let planted = "planted".repeat(1_000);
    let log = folder.file("animal-store.db-wal", &planted, MALLORY, 0o644);
    let expected = [log.to_str().unwrap(), "belongs to 4002", "move it away"];
    let uses_store = |line: &&str| !["check-config", "health"].contains(line);
    for user in [STORE, ROOT] {
        for line in COMMANDS.into_iter().filter(uses_store) {
            folder.run(user, line).assert_refused(2, &expected);
        }
        let doctor = folder.run(user, "doctor");
        doctor.assert_code(1).assert_has("belongs to 4002");
        let found = &doctor.stdout[0];
        assert!(found.starts_with("error ") && found.contains(" sqlite.file "));
    }
    assert_eq!(fs::read(&store).expect("a store"), intact);
    assert_eq!(owner(&log), MALLORY);
    fs::remove_file(log).expect("moved away");
    folder.run(STORE, "keys list").assert_code(0);
}

#[test]
fn root_uses_the_store_of_a_running_service_and_keeps_its_owner() {
    if is_not_root() {
        return;
    }
    let folder = Folder::new(STORE, 0o700);
    let store = folder.store(STORE, STORE, 0o600);
    let create = |label: &str| {
        let created = folder.run(ROOT, &format!("keys create --label {label}"));
        created.assert_code(0);
        assert_eq!(owner(&store), STORE);
    };
    let mut running = folder.program(STORE, STORE, "serve").start();
    running.address();
    create("beside");
    for suffix in ["-wal", "-shm"] {
        let path = folder.path(&format!("animal-store.db{suffix}"));
        assert_eq!(owner(&path), STORE, "{suffix}");
    }
    running.terminate();
    create("later");
    let listed = folder.run(STORE, "keys list");
    assert_eq!(listed.stdout.len(), 4, "{listed:?}");
}

/// The group of the pods is that of the volume; the uid of the pods can change.
#[test]
fn a_store_on_a_volume_of_a_group_of_this_process_is_used() {
    if is_not_root() {
        return;
    }
    for (group, folder_owner, folder_mode) in [(2_000, ROOT, 0o2770), (ROOT, STORE, 0o770)] {
        let folder = Folder::new(folder_owner, folder_mode);
        give(folder.0.path(), folder_owner, group, folder_mode);
        folder.store(1_000_650_000, group, 0o660);
        for user in [1_000_650_000, 1_000_660_000] {
            let mut running = folder.program(user, group, "serve").start();
            running.address();
            running.terminate().assert_lacks("can write to");
        }
    }
}

#[test]
fn a_store_in_a_folder_that_others_may_write_is_used_with_a_warning_and_a_finding() {
    if is_not_root() {
        return;
    }
    let folder = Folder::new(STORE, 0o755);
    folder.store(STORE, STORE, 0o600);
    give(folder.0.path(), STORE, STORE, 0o777);
    // A configuration in this folder is refused.
    let listed = folder.run(STORE, "keys list --config /dev/null");
    listed.assert_code(0).assert_has("WARN");
    listed.assert_has("(mode 777)");
    let examined = folder.run(STORE, "doctor --config /dev/null");
    examined.assert_has("warning  sqlite.permissions  other users can write to");
}
