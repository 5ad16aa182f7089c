use std::{
    env,
    ffi::OsString,
    iter,
    path::{Path, PathBuf},
};

use clap::Args;

use crate::config::{Config, Key, Sources};

/// Keys that `--memory` sets, and their value.
const BACKENDS: [&str; 2] = ["storage.backend", "keys.backend"];
const MEMORY: &str = "memory";

/// Key with the path of the SQLite file.
const FILE: &str = "storage.sqlite.path";

/// Options of `serve` and `check-config`. They are accepted before and after the command.
#[derive(Debug, Default, Clone, PartialEq, Eq, Args)]
pub(super) struct Options {
    #[command(flatten)]
    pub(super) settings: Settings,
    /// Same as --set http.listen=ADDRESS.
    #[arg(long, value_name = "ADDRESS")]
    pub(super) listen: Option<String>,
    /// Keeps pets and API keys in memory: same as --set storage.backend=memory --set keys.backend=memory.
    #[arg(long)]
    memory: bool,
    /// Prints the API key that the first start creates, although standard error is not a terminal.
    #[arg(long)]
    pub(super) print_key: bool,
}

/// Options that set the configuration.
#[derive(Debug, Default, Clone, PartialEq, Eq, Args)]
pub(super) struct Settings {
    /// TOML configuration file; default: animal-store.toml, if it exists.
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,
    /// Sets a configuration key, see docs/configuration.md; not allowed for secrets.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_and_value)]
    set: Vec<(String, String)>,
}

impl From<Settings> for Options {
    fn from(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }
}

impl Options {
    /// Joins the options before and after a command. The later options win.
    pub(super) fn join(self, later: Self) -> Self {
        Self {
            settings: Settings {
                config: later.settings.config.or(self.settings.config),
                set: self.settings.set.into_iter().chain(later.settings.set).collect(),
            },
            listen: later.listen.or(self.listen),
            memory: later.memory || self.memory,
            print_key: later.print_key || self.print_key,
        }
    }

    /// Checks that no option sets a secret, and that none contradicts `--memory`. clap does not check this, because its
    /// error message would repeat the value.
    ///
    /// # Errors
    /// If one does.
    pub(super) fn check(&self) -> Result<(), String> {
        let is_set = |key: &&&Key| key.secret && self.settings.set.iter().any(|(name, _)| name == key.name);
        if let Some(key) = Config::all_keys().iter().find(is_set) {
            let (name, variable) = (key.name, key.variable());
            return Err(format!(
                "{name} (--set) is a secret: every user of this machine could read it in the process list; set \
                 {variable} instead"
            ));
        }
        let contradicts =
            |(name, value): &&(String, String)| BACKENDS.contains(&name.as_str()) && value.trim() != MEMORY;
        match self.settings.set.iter().find(contradicts) {
            Some((name, _)) if self.memory => Err(format!("--memory contradicts --set {name}: omit one of them")),
            _ => Ok(()),
        }
    }

    /// Returns the sources of the configuration, with these options as the last one.
    pub(super) fn sources(self) -> Sources {
        let memory = BACKENDS.iter().filter(|_| self.memory).map(|&name| (name.to_owned(), MEMORY.to_owned()));
        let set = self.settings.set.into_iter().chain(memory).collect();
        Sources::from_process(self.settings.config, set, self.listen)
    }

    /// Returns the program with the options that select its configuration, as a shell reads them. They name the SQLite
    /// file if a variable does, because another shell does not have the variable.
    pub(super) fn program(&self, file: &Path) -> String {
        self.program_for(file, env::vars_os().map(|(name, _)| name))
    }

    fn program_for(&self, file: &Path, mut variables: impl Iterator<Item = OsString>) -> String {
        let key = Config::all_keys().into_iter().find(|key| key.name == FILE).expect("it is a key");
        let variable = OsString::from(key.variable());
        let is_flag = self.settings.set.iter().any(|(name, _)| name == FILE);
        let is_variable = !is_flag && variables.any(|name| name.eq_ignore_ascii_case(&variable));
        let file = is_variable.then(|| (FILE.to_owned(), file.display().to_string()));
        let name = env::args_os().next().unwrap_or_else(|| "animal-store".into());
        let config = self.settings.config.iter().flat_map(|path| ["--config".into(), path.display().to_string()]);
        let set = self.settings.set.iter().chain(&file);
        let set = set.flat_map(|(name, value)| ["--set".into(), format!("{name}={value}")]);
        let words = iter::once(name.to_string_lossy().into_owned()).chain(config).chain(set);
        words.map(|word| quoted(&word)).collect::<Vec<_>>().join(" ")
    }
}

/// Quotes a word for a shell, if a shell would change it.
pub(super) fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,@%+".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it has no =")?;
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::*;

    fn parse(args: &str) -> Options {
        let command = Options::augment_args(clap::Command::new("animal-store").no_binary_name(true));
        Options::from_arg_matches(&command.get_matches_from(args.split(' '))).unwrap()
    }

    #[test]
    fn a_secret_cannot_be_set_by_a_flag() {
        let error = parse("--set keys.memory.tokens=top-secret").check().unwrap_err();
        assert!(
            error.starts_with("keys.memory.tokens (--set) is a secret") && !error.contains("top-secret"),
            "{error}"
        );
    }

    #[test]
    fn options_before_and_after_the_command_count_and_the_later_win() {
        let options = parse("--set a=1 --set b=1 --listen x --config f").join(parse("--set b=2 --listen y"));

        let set: Vec<_> = options.settings.set.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(set, [("a", "1"), ("b", "1"), ("b", "2")]);
        assert_eq!((options.listen.as_deref(), options.settings.config), (Some("y"), Some("f".into())));
        for (earlier, later) in [("--memory", "--listen y"), ("--listen y", "--memory")] {
            assert!(parse(earlier).join(parse(later)).memory, "{earlier} {later}");
        }
    }

    #[test]
    fn without_the_default_file_only_a_file_that_is_named_is_read() {
        for (args, file) in [("--listen x", None), ("--config f", Some("f".into()))] {
            assert_eq!(parse(args).sources().file, file, "{args}");
            assert_eq!(Options::from(parse(args).settings).sources().file, file, "{args}");
        }
    }

    #[test]
    fn memory_contradicts_another_backend() {
        for (args, valid) in [
            ("--memory --set storage.backend=memory", true),
            ("--memory --set http.workers=1", true),
            ("--set storage.backend=sqlite --set keys.backend=redis", true),
            ("--set storage.backend=sqlite --memory", false),
            ("--memory --set keys.backend=redis", false),
        ] {
            assert_eq!(parse(args).check().is_ok(), valid, "{args}");
        }
        let set = parse("--memory").sources().flags;
        assert_eq!(set, BACKENDS.map(|name| (name.to_owned(), MEMORY.to_owned())));
    }

    #[test]
    fn a_command_to_paste_has_the_options_and_is_quoted() {
        let options = parse("--listen x --config it's --set a.b=/c");
        let program = options.program(Path::new("/f"));
        assert!(program.ends_with(r" --config 'it'\''s' --set a.b=/c"), "{program}");
    }

    #[test]
    fn a_command_to_paste_names_the_file_that_a_variable_sets() {
        let program =
            |args: &str, variable: &str| parse(args).program_for(Path::new("/my pets"), iter::once(variable.into()));
        let variable = "ANIMAL_STORE_STORAGE__SQLITE__PATH";
        assert!(program("--config f", variable).ends_with(" --config f --set 'storage.sqlite.path=/my pets'"));
        assert!(program("--config f", "ANIMAL_STORE_storage__sqlite__path").ends_with("/my pets'"));
        assert!(program("--config f", "ANIMAL_STORE_HTTP__LISTEN").ends_with(" --config f"));
        assert!(program("--set storage.sqlite.path=a", variable).ends_with(" --set storage.sqlite.path=a"));
    }

    #[test]
    fn a_value_is_the_text_after_the_first_equals_sign() {
        assert_eq!(key_and_value("http.listen=x=y"), Ok(("http.listen".to_owned(), "x=y".to_owned())));
        assert!(key_and_value("http.listen").is_err());
    }
}
