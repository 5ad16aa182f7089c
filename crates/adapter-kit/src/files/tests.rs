//! Files of one user, judged as that user, as another one and as root.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, chown, symlink},
};

use tempfile::{NamedTempFile, TempDir};

use super::*;

/// The owner of the files if root runs the tests.
const OWNER: u32 = 4321;

/// A folder with a file, `file`. Both belong to a user who is not root.
struct Fixture {
    folder: TempDir,
    owner: u32,
    group: u32,
}

impl Fixture {
    fn new() -> Self {
        let user = geteuid();
        let [owner, group] = if user.is_root() {
            [OWNER; 2]
        } else {
            [user.as_raw(), getegid().as_raw()]
        };
        let folder = TempDir::new().expect("a folder");
        let fixture = Self {
            folder,
            owner,
            group,
        };
        fixture.give(&fixture.path(""), 0o700);
        fixture.add("file", 0o600);
        fixture
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn add(&self, name: &str, mode: u32) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, "").expect("written");
        self.give(&path, mode);
        path
    }

    fn give(&self, path: &Path, mode: u32) {
        chown(path, Some(self.owner), Some(self.group)).expect("given");
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("set");
    }

    fn owner(&self) -> Believed {
        Believed::user(self.owner, vec![self.group])
    }

    fn other_user(&self, groups: &[u32]) -> Believed {
        Believed::user(self.owner + 1, groups.to_vec())
    }

    /// Judges a store with this file beside it, as its owner, a member of its group, another user and root.
    fn judge(&self, store: &Path, beside: &str) -> [Judgement; 4] {
        let member = self.other_user(&[self.group]);
        let users = [self.owner(), member, self.other_user(&[]), root()];
        users.map(|user| match user.judge_store(store, &[self.path(beside)]) {
            Ok(None) => Used,
            Ok(Some(_)) => UsedWithObjection,
            Err(objection) if is_foreign(&objection) => Foreign,
            Err(objection) => {
                assert!(objection.found.contains("can write to"), "{objection}");
                Writable
            }
        })
    }
}

#[derive(Debug, PartialEq)]
enum Judgement {
    Used,
    UsedWithObjection,
    /// Refused: another user owns it.
    Foreign,
    /// Refused: other users may write it.
    Writable,
}

use Judgement::{Foreign, Used, UsedWithObjection, Writable};

fn root() -> Believed {
    Believed::user(0, vec![0])
}

fn is_foreign(objection: &Objection) -> bool {
    objection.found.contains(" belongs to ")
}

fn writable(path: &Path, mode: &str) -> String {
    format!("other users can write to {} (mode {mode})", path.display())
}

/// In a folder that others may write, they can replace the file.
#[test]
fn a_file_is_believed_if_its_owner_is_and_no_one_else_can_write_it_or_its_folder() {
    for (path, mode, in_group, out_of_group) in [
        ("file", 0o600, true, true),
        ("file", 0o644, true, true),
        ("file", 0o660, true, false),
        ("file", 0o666, false, false),
        ("file", 0o602, false, false),
        ("", 0o755, true, true),
        ("", 0o770, true, false),
        ("", 0o777, false, false),
        ("", 0o1777, true, true),
    ] {
        let fixture = Fixture::new();
        fixture.give(&fixture.path(path), mode);
        for (groups, is_believed) in [(vec![fixture.group], in_group), (vec![], out_of_group)] {
            let believed = Believed::user(fixture.owner, groups);
            let objection = believed.object(&fixture.path("file"));
            assert_eq!(objection.is_none(), is_believed, "{mode:o}: {objection:?}");
        }
    }
}

#[test]
fn a_device_is_believed_whatever_its_mode() {
    let device = Path::new("/dev/null");
    assert_eq!(Believed::this_process().object(device), None);
}

#[test]
fn a_foreign_owner_is_believed_only_where_the_caller_says_so() {
    let fixture = Fixture::new();
    let file = fixture.path("file");
    for other in [fixture.other_user(&[]), root()] {
        let objection = other.object(&file).expect("it is foreign");
        assert!(is_foreign(&objection), "{objection}");
        let owners = [other.owners.clone(), vec![fixture.owner]].concat();
        assert_eq!(Believed { owners, ..other }.object(&file), None);
    }
}

/// As in a volume of Kubernetes: `file -> ..data/file`, `..data -> version`.
#[test]
fn links_are_followed_and_their_targets_and_folders_are_judged() {
    let fixture = Fixture::new();
    let folder = fixture.path("version");
    fs::create_dir(&folder).expect("created");
    fixture.give(&folder, 0o755);
    let target = fixture.add("version/file", 0o644);
    symlink("version", fixture.path("..data")).expect("linked");
    symlink("..data/file", fixture.path("link")).expect("linked");
    // A link belongs to the user of the tests.
    let mut believed = fixture.owner();
    believed.owners.push(geteuid().as_raw());
    let judge = || believed.object(&fixture.path("link"));
    assert_eq!(judge(), None);
    fixture.give(&folder, 0o777);
    assert_eq!(judge().expect("writable").found, writable(&folder, "777"));
    fixture.give(&folder, 0o755);
    fixture.give(&target, 0o666);
    assert_eq!(judge().expect("writable").found, writable(&target, "666"));
    symlink("loop", fixture.path("loop")).expect("linked");
    let looping = fixture.owner().object(&fixture.path("loop"));
    assert_eq!(looping, None, "it cannot be read");
}

#[test]
fn a_secret_that_others_may_read_is_an_objection() {
    let fixture = Fixture::new();
    for (mode, is_secret) in [(0o600, true), (0o440, true), (0o644, false), (0o604, false)] {
        let file = fixture.add(&format!("secret-{mode:o}"), mode);
        assert_eq!(object_to_readers(&file).is_none(), is_secret, "{mode:o}");
    }
    assert_eq!(object_to_readers(&fixture.path("missing")), None);
}

#[test]
fn a_store_is_believed_by_its_owner_its_group_and_root() {
    let fixture = Fixture::new();
    let store = fixture.path("file");
    fixture.add("file-wal", 0o600);
    assert_eq!(fixture.judge(&store, "file-wal"), [Used, Used, Used, Used]);
    // A volume claim after fsGroup.
    fixture.give(&fixture.path(""), 0o2770);
    fixture.add("file", 0o660);
    fixture.add("file-wal", 0o660);
    let expected = [Used, Used, Writable, Used];
    assert_eq!(fixture.judge(&store, "file-wal"), expected);
}

#[test]
fn a_store_or_a_file_beside_it_that_others_may_write_is_refused_to_everyone() {
    for name in ["file", "file-wal", "file-journal", "file-shm"] {
        let fixture = Fixture::new();
        fixture.add(name, 0o666);
        let judged = fixture.judge(&fixture.path("file"), name);
        assert_eq!(judged, [Writable, Writable, Writable, Writable], "{name}");
    }
}

/// Before the store exists, too.
#[test]
fn a_log_of_another_user_is_refused() {
    let fixture = Fixture::new();
    for store in [Path::new("/etc/passwd"), &fixture.path("missing")] {
        let judged = fixture.judge(store, "file");
        assert_eq!(judged, [Used, Foreign, Foreign, Foreign], "{store:?}");
    }
}

#[test]
fn where_every_user_can_create_a_store_it_is_believed_by_its_owner_and_root_only() {
    let fixture = Fixture::new();
    let store = NamedTempFile::new_in("/tmp").expect("a file");
    fixture.give(store.path(), 0o600);
    let judged = fixture.judge(store.path(), "none");
    assert_eq!(judged, [Used, Foreign, Foreign, Used]);
}

#[test]
fn the_owner_of_the_working_directory_is_believed_about_the_files_in_it() {
    let owner = Path::new(".").metadata().expect("a folder").uid();
    for (path, added) in [("file", &[owner][..]), ("folder/file", &[]), ("/file", &[])] {
        let believed = Believed::user(1, Vec::new()).and_owner_of_folder(Path::new(path));
        assert_eq!(believed.owners[2..], *added, "{path}");
    }
}

#[test]
fn a_store_in_a_folder_that_others_may_write_is_used_with_an_objection() {
    let fixture = Fixture::new();
    fixture.give(&fixture.path(""), 0o777);
    let store = fixture.path("file");
    let judged = fixture.judge(&store, "none");
    assert!(
        judged
            .iter()
            .all(|judgement| *judgement == UsedWithObjection)
    );
    let objection = fixture.owner().judge_store(&store, &[]);
    let found = objection.expect("it is used").expect("an objection").found;
    assert_eq!(found, writable(fixture.folder.path(), "777"));
}

#[test]
fn an_objection_says_who_can_do_what() {
    let fixture = Fixture::new();
    let path = fixture.add("file", 0o666);
    let objection = fixture.owner().object(&path).expect("writable");
    assert!(objection.advice.contains("chmod go-w /"), "{objection}");
    fixture.add("file", 0o644);
    let objection = object_to_readers(&path).expect("readable");
    assert!(
        objection.to_string().contains("can read the secret in /"),
        "{objection}"
    );
    assert!(objection.advice.contains("chmod o-rwx /"), "{objection}");
}
