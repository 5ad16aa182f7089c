//! The mounts of the file and its folder.
//!
//! **Problem.** If the file alone is mounted into a container, SQLite keeps its log in the layer of the container, and a
//! new container loses the last pets. A network file system lacks the locks and the shared memory of SQLite.

use std::{fs, path::Path};

/// The beginnings of the types of file systems that are on another machine, or behind another process.
const NETWORK: [&str; 7] = ["nfs", "cifs", "smb", "9p", "fuse", "virtiofs", "ceph"];

/// Returns what is wrong with the mount of a file, and can lose pets.
pub(crate) fn mount_problem(path: &Path) -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    problem_in(&mounts, &path.canonicalize().ok()?)
}

/// `mounts`: see `/proc/PID/mountinfo` in proc(5).
fn problem_in(mounts: &str, path: &Path) -> Option<String> {
    let escaped = [
        ('\\', r"\134"),
        (' ', r"\040"),
        ('\t', r"\011"),
        ('\n', r"\012"),
    ]
    .into_iter()
    .fold(path.to_str()?.to_owned(), |text, (character, escape)| {
        text.replace(character, escape)
    });
    // Of several mounts on one point, the last one hides the others.
    let mount = mounts
        .lines()
        .filter(|mount| Path::new(&escaped).starts_with(point(mount)))
        .max_by_key(|mount| point(mount).len())?;
    if point(mount) == escaped {
        let problem = "the file is mounted alone, so its log (-wal) is on another disk or in a container: mount its folder";
        return Some(problem.to_owned());
    }
    let kind = mount.split(" - ").nth(1)?.split(' ').next()?;
    let is_network = NETWORK.iter().any(|network| kind.starts_with(network));
    is_network.then(|| format!("the file is on {kind}, which is no local disk: move it to one"))
}

/// Returns the point of a mount.
fn point(mount: &str) -> &str {
    mount.split(' ').nth(4).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = r"1 0 0:30 / / rw,relatime - overlay overlay rw
2 1 8:1 /srv /data rw,relatime shared:1 - ext4 /dev/sda1 rw
3 2 8:1 /srv/pets.db /data/pets.db rw,relatime - ext4 /dev/sda1 rw
4 1 0:40 / /my\040pets rw,relatime - nfs4 server:/pets rw
5 1 0:41 / /share rw,relatime - cifs //server/pets rw
6 1 0:42 / /host rw,relatime - 9p host rw
7 1 0:43 / /ssh rw,relatime - fuse.sshfs server:/pets rw
8 1 0:44 / /hidden rw,relatime - nfs server:/pets rw
9 8 8:2 / /hidden rw,relatime - ext4 /dev/sda2 rw";

    #[test]
    fn a_file_that_is_mounted_alone_and_network_file_systems_are_problems() {
        for (path, expected) in [
            ("/data/pets.db", Some("mounted alone")),
            ("/my pets/pets.db", Some("on nfs4")),
            ("/share/folder/pets.db", Some("on cifs")),
            ("/host/pets.db", Some("on 9p")),
            ("/ssh/pets.db", Some("on fuse.sshfs")),
            ("/data/other.db", None),
            ("/data/pets.db.old", None),
            ("/sharelike/pets.db", None),
            ("/hidden/pets.db", None),
            ("/pets.db", None),
        ] {
            let problem = problem_in(MOUNTS, Path::new(path));
            assert_eq!(problem.is_some(), expected.is_some(), "{path}: {problem:?}");
            let found = problem.unwrap_or_default();
            assert!(found.contains(expected.unwrap_or_default()), "{found}");
        }
    }
}
