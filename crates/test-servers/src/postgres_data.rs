use std::{
    env, fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{home::Home, programs};

/// If these change, the archive needs another name.
const INITDB: [&str; 5] = [
    "--no-sync",
    "--auth=trust",
    "--encoding=UTF8",
    "--locale=C.UTF-8",
    "--username=postgres",
];

/// Creates a data folder for PostgreSQL in this home.
///
/// `initdb` takes most of a second, so it runs once per machine. Its result is kept as one file, so that
/// it is never incomplete, neither while it is created nor after a cleanup of the temporary folder.
pub(crate) fn make(home: &Home) -> PathBuf {
    let version = output(home.command(programs::find("postgres")).arg("--version"));
    let version = version
        .split_whitespace()
        .nth(2)
        .expect("`postgres (PostgreSQL) 15.1`, and more");
    let archive = env::temp_dir().join(format!(
        "animal-store-test-postgres-{version}-{}.tar",
        home.owner()
    ));
    // An archive of another user could contain anything.
    if archive
        .metadata()
        .is_ok_and(|file| file.uid() == home.owner())
    {
        output(home.command("tar").arg("-xf").arg(archive));
    } else {
        output(
            home.command(programs::find("initdb"))
                .args(["-D", "data"])
                .args(INITDB),
        );
        keep(home, &archive);
    }
    home.path().join("data")
}

fn keep(home: &Home, archive: &Path) {
    output(home.command("tar").args(["-cf", "data.tar", "data"]));
    // If this fails, the next start is as slow as this one.
    let _ = fs::rename(home.path().join("data.tar"), archive);
}

fn output(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}; is PostgreSQL installed?"));
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
