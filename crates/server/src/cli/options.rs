use std::{
    env,
    ffi::OsString,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf, absolute},
};

use animal_store_adapter_kit::Believed;
use animal_store_adapters_cli::UsageError;
use animal_store_settings::SettingsError;
use clap::Args;

use crate::{backends::sqlite, config::Sources};

/// The configuration files of which the first that exists is read if no other is named: that of the working directory,
/// and that of an installation.
const DEFAULT_FILES: [&str; 2] = ["animal-store.toml", "/etc/animal-store/animal-store.toml"];

/// Settings that `--memory` sets.
const BACKENDS: [&str; 2] = ["storage.backend", "keys.backend"];

/// Options of every command, accepted before and after it.
#[derive(Debug, Clone, Args)]
pub(super) struct Options {
    /// TOML configuration file; default: animal-store.toml, or /etc/animal-store/animal-store.toml, if one exists.
    #[arg(long, global = true, value_name = "PATH")]
    config: Option<PathBuf>,
    /// Gives a setting a value, see docs/configuration.md; not allowed for secrets.
    #[arg(long, global = true, value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(super) set: Vec<(String, String)>,
    /// Same as --set http.listen=ADDRESS.
    #[arg(long, global = true, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Sets storage.backend and keys.backend to memory, unless --set sets them.
    #[arg(long, global = true)]
    memory: bool,
    /// Prints the API key that the first start creates, although standard error is not a terminal.
    #[arg(long, global = true)]
    pub(super) print_key: bool,
}

impl Options {
    /// Checks that every `--set` of these arguments counts: clap keeps those of one side of the command.
    pub(super) fn check(
        &self,
        arguments: impl Iterator<Item = OsString>,
    ) -> Result<(), UsageError> {
        let is_set = |argument: &OsString| {
            argument == "--set" || argument.as_encoded_bytes().starts_with(b"--set=")
        };
        let options = arguments.take_while(|argument| argument != "--");
        if options.filter(is_set).count() > self.set.len() {
            let reason = "--set must be before the command or after it, not on both sides of it";
            return Err(UsageError(reason.to_owned()));
        }
        Ok(())
    }

    /// Returns the sources of the configuration, with these options as the last one. `--set` wins over `--memory`, and
    /// `--listen` over both.
    ///
    /// # Errors
    /// If the default file is in the working directory, and others can write it than the owner of that folder.
    pub(super) fn sources(&self) -> Result<Sources, SettingsError> {
        let file = match &self.config {
            Some(path) => Some(path.clone()),
            None => default_file()?,
        };
        Ok(Sources {
            file,
            environment: env::vars_os().collect(),
            flags: self.flags(),
        })
    }

    fn flags(&self) -> Vec<(String, String)> {
        let mut flags = Vec::new();
        if self.memory {
            flags.extend(BACKENDS.map(|name| (name.to_owned(), "memory".to_owned())));
        }
        flags.extend_from_slice(&self.set);
        if let Some(address) = &self.listen {
            flags.push(("http.listen".to_owned(), address.clone()));
        }
        flags
    }

    /// Returns the program with the options that select its configuration, as a shell reads them. They name both files:
    /// another shell has neither the variable that may have set the path of SQLite nor the working directory.
    pub(super) fn program(&self, file: &Path) -> String {
        let mut program = env::args_os();
        let program = program.next().unwrap_or_else(|| "animal-store".into());
        let mut words = vec![program.display().to_string()];
        if let Some(path) = &self.config {
            words.push("--config".to_owned());
            let path = absolute(path).unwrap_or_else(|_| path.clone());
            words.push(path.display().to_string());
        }
        words.push("--set".to_owned());
        words.push(format!("{}={}", sqlite::PATH, file.display()));
        for (name, value) in &self.set {
            if name != sqlite::PATH {
                words.push("--set".to_owned());
                words.push(format!("{name}={value}"));
            }
        }
        shell_words::join(words)
    }
}

/// Returns the first of these files that exists. A symbolic link to a missing file does: reading it is an error. In a
/// working directory that this user may not enter, such as the home folder of root after `runuser`, no file exists for
/// it.
fn first_file(files: &[&Path]) -> Option<PathBuf> {
    let file = files.iter().find(|file| exists(file))?;
    Some(file.to_path_buf())
}

fn exists(file: &Path) -> bool {
    match fs::symlink_metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => file.is_absolute(),
        Ok(_) | Err(_) => true,
    }
}

/// Returns the file that is read if none is named. Refuses one of the working directory that others can write than this
/// user, root and the owner of the folder.
fn default_file() -> Result<Option<PathBuf>, SettingsError> {
    let Some(file) = first_file(&DEFAULT_FILES.map(Path::new)) else {
        return Ok(None);
    };
    let believed = Believed::this_process().and_owner_of_folder(&file);
    if file.is_relative()
        && let Some(objection) = believed.object(&file)
    {
        let path = absolute(&file).unwrap_or(file);
        let path = path.display();
        return Err(SettingsError::new(format!(
            "{path} is not read: {objection}; if it is the right one, name it with --config"
        )));
    }
    Ok(Some(file))
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it has no =")?;
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use clap::FromArgMatches;

    use super::*;

    fn parse(args: &str) -> Options {
        let command = clap::Command::new("animal-store")
            .no_binary_name(true)
            .subcommand(clap::Command::new("keys"));
        let command = Options::augment_args(command);
        Options::from_arg_matches(&command.get_matches_from(args.split(' '))).unwrap()
    }

    fn check(args: &str) -> Result<(), UsageError> {
        parse(args).check(args.split(' ').map(Into::into))
    }

    #[test]
    fn a_set_on_each_side_of_the_command_is_refused() {
        for (args, valid) in [
            ("--set a=1 --set=b=2 keys", true),
            ("keys --set a=1 --set=b=2", true),
            ("--set a=1 keys --set b=2", false),
            ("--set=a=1 keys --set b=2", false),
        ] {
            assert_eq!(check(args).is_ok(), valid, "{args}");
        }
    }

    #[test]
    fn other_options_before_and_after_the_command_count_and_the_later_win() {
        let options = parse("--listen x --config f --set a=1=2 keys --listen y");
        assert_eq!(
            (options.listen.as_deref(), options.config),
            (Some("y"), Some("f".into()))
        );
        // A value is the text after the first equals sign.
        assert_eq!(options.set, [("a".to_owned(), "1=2".to_owned())]);
        for args in ["--memory keys --listen y", "--listen y keys --memory"] {
            assert!(parse(args).memory, "{args}");
        }
    }

    #[test]
    fn a_file_that_is_named_is_read_and_otherwise_the_first_default_file_that_exists() {
        assert_eq!(
            parse("--config f").sources().unwrap().file,
            Some("f".into())
        );
        let folder = tempfile::tempdir().unwrap();
        let [local, dangling, installed] =
            ["local", "dangling", "installed"].map(|name| folder.path().join(name));
        fs::write(&installed, "").unwrap();
        symlink("missing", &dangling).unwrap();
        assert_eq!(first_file(&[&local, &installed]), Some(installed.clone()));
        assert_eq!(first_file(&[&local, &dangling, &installed]), Some(dangling));
        fs::write(&local, "").unwrap();
        assert_eq!(first_file(&[&local, &installed]), Some(local));
        assert_eq!(first_file(&[&folder.path().join("missing")]), None);
    }

    #[test]
    fn memory_sets_both_backends_unless_another_option_does() {
        let set = parse("--set keys.backend=redis --memory")
            .sources()
            .unwrap()
            .flags;
        let expected = [
            ("storage.backend", "memory"),
            ("keys.backend", "memory"),
            ("keys.backend", "redis"),
        ];
        assert_eq!(
            set,
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
    }

    #[test]
    fn a_command_to_paste_has_the_options_and_the_file_and_is_quoted() {
        let options = parse("--listen x --config it's --set a.b=/c --set storage.sqlite.path=pets");
        let program = options.program(Path::new("/my pets"));
        let folder = env::current_dir().unwrap();
        let folder = folder.display();
        let expected = format!(
            r" --config '{folder}/it'\''s' --set 'storage.sqlite.path=/my pets' --set 'a.b=/c'"
        );
        assert!(program.ends_with(&expected), "{program}");
    }
}
