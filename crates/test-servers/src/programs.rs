use std::{env, fs, path::PathBuf};

/// Finds a program on the path, in Debian's folder of the newest PostgreSQL, or in `/usr/sbin`. If there is none,
/// returns the name, for the error message.
pub(crate) fn find(name: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let versions = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let number = |version: &PathBuf| version.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions
        .max_by_key(number)
        .map(|version| version.join("bin"));
    let mut folders = env::split_paths(&path)
        .chain(newest)
        .chain(["/usr/sbin".into()]);
    folders
        .find_map(|folder| Some(folder.join(name)).filter(|file| file.is_file()))
        .unwrap_or_else(|| name.into())
}
