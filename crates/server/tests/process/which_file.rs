//! Which configuration, secret and store the program believes, run as users of the machine that only root can become.

use std::{
    env,
    fs::{self, OpenOptions, Permissions},
    io::Write,
    os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink},
    path::{Path, PathBuf},
};

use animal_store_test_servers::Certificates;
use nix::unistd::geteuid;
use tempfile::TempDir;

use crate::program::{Exited, Program, TOKEN};

const ROOT: u32 = 0;
/// The user of the service.
const STORE: u32 = 65_532;
/// Another user.
const MALLORY: u32 = 4_002;

const CONFIG: &str = "animal-store.toml";
/// Commands that read the configuration.
const COMMANDS: [&[&str]; 8] = [
    &[],
    &["check-config"],
    &["keys", "list"],
    &["keys", "revoke", "a"],
    &["pets", "export"],
    &["backup", "backup.db"],
    &["migrate"],
    &["health"],
];

/// A folder whose way belongs to root.
struct Folder(TempDir);

impl Folder {
    /// `None`: only root can run these tests, which is reported.
    fn new(owner: u32, mode: u32) -> Option<Self> {
        if !geteuid().is_root() {
            report_not_tested("files of other users: only root can make them");
            return None;
        }
        let folder = Self(TempDir::new().expect("a folder"));
        give(folder.0.path(), owner, owner, mode);
        Some(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, text: &str, owner: u32, mode: u32) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("written");
        give(&path, owner, owner, mode);
        path
    }

    /// The program in this folder, as a user with this group beside his own.
    fn program(&self, user: u32, group: u32, args: &[&str]) -> Program {
        self.wrapped(user, group, "", args)
    }

    /// `mounts`: a script that runs before in a mount namespace of its own.
    fn wrapped(&self, user: u32, group: u32, mounts: &str, args: &[&str]) -> Program {
        let unshare = if mounts.is_empty() {
            ""
        } else {
            "unshare --mount"
        };
        let script = format!(
            "umask 077; exec {unshare} sh -c '{mounts} \
             exec setpriv --reuid {user} --regid {user} --groups {user},{group} \"$@\"' sh \"$@\""
        );
        Program::in_folder(self.0.path())
            .args(args)
            .run_by_shell(&script)
    }

    fn run(&self, user: u32, args: &[&str]) -> Exited {
        self.program(user, user, args).run()
    }

    /// Creates a store with an API key.
    fn store(&self, user: u32) -> PathBuf {
        let created = self.run(user, &["keys", "create", "--create", "--label", "shop"]);
        assert_eq!(created.code, Some(0), "{created:?}");
        self.path("animal-store.db")
    }
}

fn give(path: &Path, user: u32, group: u32, mode: u32) {
    chown(path, Some(user), Some(group)).expect("root may");
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("root may");
}

/// Adds a line to the file that `NOT_TESTED` names. `scripts/check` ends with these lines.
fn report_not_tested(text: &str) {
    if let Some(path) = env::var_os("NOT_TESTED") {
        let mut options = OpenOptions::new();
        let mut file = options
            .append(true)
            .create(true)
            .open(path)
            .expect("a list");
        writeln!(file, "{text}").expect("written");
    }
}

#[track_caller]
fn assert_refused_by_every_command(folder: &Folder, user: u32, texts: &[&str]) {
    for args in COMMANDS {
        folder.run(user, args).assert_refused(2, texts);
    }
}

#[track_caller]
fn warnings(exited: &Exited) -> String {
    assert_eq!(exited.code, Some(0), "{exited:?}");
    let warnings = exited
        .stderr
        .iter()
        .filter(|line| line.contains("warning: "));
    warnings.cloned().collect::<Vec<_>>().join("\n")
}

#[test]
fn a_default_configuration_of_another_user_is_refused_by_every_command() {
    let Some(folder) = Folder::new(ROOT, 0o1777) else {
        return;
    };
    let config = folder.file(
        CONFIG,
        "[storage.sqlite]\npath = 'other.db'\n",
        MALLORY,
        0o644,
    );
    let expected = [config.to_str().unwrap(), "belongs to 4002", "--config"];
    for user in [STORE, ROOT] {
        assert_refused_by_every_command(&folder, user, &expected);
    }
    folder.run(STORE, &["doctor"]).assert_refused(2, &expected);
    let named = folder.run(STORE, &["check-config", "--config", CONFIG]);
    assert!(warnings(&named).contains("belongs to 4002"), "{named:?}");
    for args in [
        &["openapi"][..],
        &["config", "init"],
        &["completions", "bash"],
    ] {
        assert_eq!(folder.run(STORE, args).code, Some(0), "{args:?}");
    }
}

#[test]
fn a_default_configuration_that_others_can_write_or_replace_is_refused() {
    for (file_mode, folder_mode) in [(0o666, 0o755), (0o660, 0o755), (0o600, 0o777)] {
        let Some(folder) = Folder::new(STORE, folder_mode) else {
            return;
        };
        let path = folder.file(CONFIG, "", STORE, file_mode);
        // A group of which the process is no member.
        chown(path, None, Some(MALLORY)).expect("root may");
        let refused = folder.run(STORE, &["check-config"]);
        refused.assert_refused(
            2,
            &["other users can write to ", "run chmod go-w ", "--config"],
        );
    }
    let Some(folder) = Folder::new(ROOT, 0o1777) else {
        return;
    };
    folder.file("mine.toml", "", STORE, 0o600);
    symlink("mine.toml", folder.path(CONFIG)).expect("linked");
    std::os::unix::fs::lchown(folder.path(CONFIG), Some(MALLORY), None).expect("root may");
    folder
        .run(STORE, &["check-config"])
        .assert_refused(2, &["belongs to 4002"]);
}

#[test]
fn a_default_configuration_of_this_user_of_root_or_of_the_folders_owner_is_read() {
    for (folder_owner, folder_mode, owner, user) in [
        (MALLORY, 0o755, MALLORY, STORE),
        (MALLORY, 0o755, MALLORY, ROOT),
        (ROOT, 0o1777, STORE, STORE),
        (ROOT, 0o755, ROOT, STORE),
    ] {
        let Some(folder) = Folder::new(folder_owner, folder_mode) else {
            return;
        };
        folder.file(CONFIG, "[http]\nworkers = 3\n", owner, 0o644);
        let checked = folder.run(user, &["check-config"]);
        let lines = checked.assert_success().stdout.join("\n");
        assert!(
            lines.contains("http.workers = 3 # animal-store.toml, line 2"),
            "{lines}"
        );
    }
}

/// Compose, in a clone of a user with the umask 002: the file keeps its owner and its mode in the container.
#[test]
fn a_file_on_a_read_only_mount_is_read_whoever_owns_it() {
    let Some(folder) = Folder::new(ROOT, 0o755) else {
        return;
    };
    let config = folder.file(CONFIG, "[http]\nworkers = 3\n", 1_000, 0o664);
    let path = config.to_str().unwrap();
    let mounts = format!("mount --bind {path} {path} && mount -o remount,bind,ro {path} &&");
    let checked = folder
        .wrapped(STORE, STORE, &mounts, &["check-config"])
        .run();
    if checked
        .stderr
        .iter()
        .any(|line| line.starts_with("unshare: ") || line.starts_with("mount: "))
    {
        return report_not_tested("a read-only mount: root cannot mount here");
    }
    assert_eq!(warnings(&checked), "");
    folder
        .run(STORE, &["check-config"])
        .assert_refused(2, &["belongs to "]);
}

#[test]
fn a_named_file_that_others_can_write_or_a_secret_that_they_can_read_is_a_warning_and_a_finding() {
    let Some(folder) = Folder::new(STORE, 0o755) else {
        return;
    };
    folder.file("foreign.toml", "", MALLORY, 0o644);
    folder.file("writable.toml", "", STORE, 0o622);
    for (name, text) in [
        (
            "foreign.toml",
            "foreign.toml belongs to 4002, and 65532 runs this process",
        ),
        (
            "writable.toml",
            "/writable.toml (mode 622): run chmod go-w ",
        ),
    ] {
        let checked = folder.run(STORE, &["check-config", "--config", name]);
        assert!(warnings(&checked).contains(text), "{checked:?}");
    }
    folder.file("tokens", TOKEN, MALLORY, 0o664);
    let program = |args: &[&str]| {
        folder
            .program(STORE, STORE, args)
            .env("ANIMAL_STORE_KEYS__MEMORY__TOKENS_FILE", "tokens")
            .env("ANIMAL_STORE_STORAGE__BACKEND", "memory")
    };
    let doctor = program(&["doctor"]).run().stdout.join("\n");
    for text in [
        "tokens belongs to 4002",
        "/tokens (mode 664): run as 4002: chmod o-rwx ",
    ] {
        assert!(doctor.contains(text), "{doctor}");
        program(&[]).start().wait_for_log(|event| {
            event["level"] == "WARN"
                && event["message"]
                    .as_str()
                    .is_some_and(|line| line.contains(text))
        });
    }
}

#[test]
fn the_sides_of_a_copy_and_the_authorities_of_postgresql_are_judged() {
    let Some(folder) = Folder::new(STORE, 0o755) else {
        return;
    };
    folder.store(STORE);
    folder.file(
        "from.toml",
        "storage.sqlite.path = 'animal-store.db'\n",
        STORE,
        0o622,
    );
    let args = ["copy", "--from", "from.toml", "--to", "copy.db"];
    let script = format!("exec setpriv --reuid {STORE} --regid {STORE} --clear-groups \"$@\"");
    let copied = Program::in_folder(folder.0.path())
        .args(&args)
        .run_by_shell(&script)
        .run();
    assert_eq!(copied.code, Some(0), "{copied:?}");
    assert!(
        copied.output().contains("/from.toml (mode 622)"),
        "{copied:?}"
    );

    let authority = Certificates::make(folder.0.path()).authority;
    give(&authority, STORE, STORE, 0o666);
    let url = format!(
        "postgres://store@postgres.invalid/store?sslmode=verify-full&sslrootcert={}",
        authority.display()
    );
    let checked = folder.program(STORE, STORE, &["check-config"]);
    let checked = checked
        .env("ANIMAL_STORE_STORAGE__POSTGRES__URL", &url)
        .run();
    assert!(
        warnings(&checked).contains("(mode 666): run chmod go-w "),
        "{checked:?}"
    );
}

#[test]
fn a_log_a_journal_or_a_shared_memory_of_another_user_is_refused_by_every_command() {
    for suffix in ["-wal", "-journal", "-shm"] {
        let Some(folder) = Folder::new(ROOT, 0o1777) else {
            return;
        };
        let store = folder.store(STORE);
        let intact = fs::read(&store).expect("a store");
        let name = format!("animal-store.db{suffix}");
        let planted = folder.file(&name, &"planted".repeat(1_000), MALLORY, 0o644);
        let expected = [planted.to_str().unwrap(), "belongs to 4002", "move it away"];
        for user in [STORE, ROOT] {
            for args in COMMANDS
                .iter()
                .filter(|args| !["check-config", "health"].contains(args.first().unwrap_or(&"")))
            {
                folder.run(user, args).assert_refused(2, &expected);
            }
            let doctor = folder.run(user, &["doctor"]);
            let found = doctor.stdout.join("\n");
            assert!(
                found.starts_with("error ")
                    && found.contains(" sqlite.file ")
                    && found.contains("belongs to 4002"),
                "{found}"
            );
            assert_eq!(doctor.code, Some(1), "{doctor:?}");
        }
        assert_eq!(fs::read(&store).expect("a store"), intact);
        assert_eq!(planted.metadata().expect("it is left").uid(), MALLORY);
        fs::remove_file(planted).expect("moved away");
        assert_eq!(folder.run(STORE, &["keys", "list"]).code, Some(0));
    }
}

#[test]
fn a_store_that_others_may_write_or_of_another_user_in_a_shared_folder_is_refused() {
    let Some(folder) = Folder::new(STORE, 0o755) else {
        return;
    };
    let store = folder.store(STORE);
    give(&store, STORE, STORE, 0o666);
    for user in [STORE, ROOT] {
        let refused = folder.run(user, &["keys", "list"]);
        refused.assert_refused(2, &[store.to_str().unwrap(), "(mode 666)", "chmod go-w"]);
    }
    let Some(folder) = Folder::new(ROOT, 0o1777) else {
        return;
    };
    let store = folder.store(MALLORY);
    give(&store, MALLORY, MALLORY, 0o644);
    let refused = folder.run(STORE, &["keys", "list"]);
    refused.assert_refused(2, &[store.to_str().unwrap(), "belongs to 4002"]);
    assert_eq!(
        folder.run(ROOT, &["keys", "list"]).code,
        Some(0),
        "root may use any store"
    );
}

#[test]
fn root_uses_the_store_of_a_running_service_and_keeps_its_owner() {
    let Some(folder) = Folder::new(STORE, 0o700) else {
        return;
    };
    let store = folder.store(STORE);
    let mut running = folder.program(STORE, STORE, &[]).start();
    running.address();
    let created = folder.run(ROOT, &["keys", "create", "--label", "by root"]);
    assert_eq!(created.code, Some(0), "{created:?}");
    for suffix in ["", "-wal", "-shm"] {
        let path = format!("{}{suffix}", store.display());
        assert_eq!(
            Path::new(&path).metadata().expect("a file").uid(),
            STORE,
            "{path}"
        );
    }
    running.terminate();
    let stopped = folder.run(ROOT, &["keys", "create", "--label", "later"]);
    assert_eq!(
        (stopped.code, store.metadata().expect("a file").uid()),
        (Some(0), STORE)
    );
    assert_eq!(folder.run(STORE, &["keys", "list"]).stdout.len(), 4);
}

/// The group of the pods is that of the volume; the uid of the pods can change.
#[test]
fn a_store_on_a_volume_of_a_group_of_this_process_is_used() {
    for (group, folder_owner, folder_mode) in [(2_000, ROOT, 0o2770), (ROOT, STORE, 0o770)] {
        let Some(folder) = Folder::new(folder_owner, folder_mode) else {
            return;
        };
        give(folder.0.path(), folder_owner, group, folder_mode);
        let create = ["keys", "create", "--create", "--label", "shop"];
        let created = folder.program(1_000_650_000, group, &create).run();
        assert_eq!(created.code, Some(0), "{created:?}");
        give(&folder.path("animal-store.db"), 1_000_650_000, group, 0o660);
        for user in [1_000_650_000, 1_000_660_000] {
            let mut running = folder.program(user, group, &[]).start();
            running.address();
            let ended = running.terminate();
            assert!(!ended.output().contains("can write to"), "{ended:?}");
        }
    }
}

#[test]
fn a_store_in_a_folder_that_others_may_write_is_used_with_a_warning_and_a_finding() {
    let Some(folder) = Folder::new(STORE, 0o777) else {
        return;
    };
    folder.store(STORE);
    let listed = folder.run(STORE, &["keys", "list"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let log = listed.stderr.join("\n");
    assert!(log.contains("WARN") && log.contains("(mode 777)"), "{log}");
    let doctor = folder.run(STORE, &["doctor"]).stdout.join("\n");
    assert!(
        doctor.contains("warning  sqlite.permissions  other users can write to"),
        "{doctor}"
    );
}

/// As Kubernetes mounts them: links through `..data`, the group of the pod, and a folder that everyone may write.
#[test]
fn secrets_and_configurations_of_a_volume_of_kubernetes_are_read() {
    for mode in [0o777, 0o1777] {
        let Some(folder) = Folder::new(ROOT, mode) else {
            return;
        };
        fs::create_dir(folder.path("..2026")).expect("created");
        give(&folder.path("..2026"), ROOT, 2_000, 0o755);
        for (name, text) in [("tokens", TOKEN), (CONFIG, "[http]\nworkers = 3\n")] {
            let path = folder.file(&format!("..2026/{name}"), text, ROOT, 0o440);
            give(&path, ROOT, 2_000, 0o440);
            symlink(format!("..data/{name}"), folder.path(name)).expect("linked");
        }
        symlink("..2026", folder.path("..data")).expect("linked");
        let config = folder.path(CONFIG);
        let args = ["check-config", "--config", config.to_str().unwrap()];
        let checked = folder.program(STORE, 2_000, &args);
        let tokens = folder.path("tokens");
        let checked = checked
            .env(
                "ANIMAL_STORE_KEYS__MEMORY__TOKENS_FILE",
                tokens.to_str().unwrap(),
            )
            .run();
        assert!(!warnings(&checked).contains("the secret in"), "{checked:?}");
    }
}

#[test]
fn the_conffile_of_debian_and_credentials_of_systemd_are_read_without_a_warning() {
    let Some(folder) = Folder::new(STORE, 0o500) else {
        return;
    };
    let config = folder.file(
        CONFIG,
        &format!("keys.memory.tokens = '{TOKEN}'\n"),
        ROOT,
        0o640,
    );
    give(&config, ROOT, STORE, 0o640);
    let named = folder.run(
        STORE,
        &["check-config", "--config", config.to_str().unwrap()],
    );
    assert_eq!(warnings(&named), "");
    let credential = folder.file("credential", TOKEN, STORE, 0o400);
    fs::remove_file(config).expect("removed");
    let checked = folder.program(STORE, STORE, &["check-config"]);
    let name = "ANIMAL_STORE_KEYS__MEMORY__TOKENS_FILE";
    assert_eq!(
        warnings(&checked.env(name, credential.to_str().unwrap()).run()),
        ""
    );
}

#[test]
fn the_source_of_a_copy_may_belong_to_another_user() {
    let Some(folder) = Folder::new(MALLORY, 0o755) else {
        return;
    };
    let source = folder.store(MALLORY);
    give(&source, MALLORY, MALLORY, 0o644);
    for user in [ROOT, STORE] {
        let Some(target) = Folder::new(user, 0o700) else {
            return;
        };
        let args = [
            "copy",
            "--from",
            source.to_str().unwrap(),
            "--to",
            "copy.db",
        ];
        let script = format!("exec setpriv --reuid {user} --regid {user} --clear-groups \"$@\"");
        let copied = Program::in_folder(target.0.path())
            .args(&args)
            .run_by_shell(&script)
            .run();
        assert_eq!(copied.code, Some(0), "{copied:?}");
        assert_eq!(
            target.path("copy.db").metadata().expect("a copy").uid(),
            user
        );
    }
}
