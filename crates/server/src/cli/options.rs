use std::path::PathBuf;

use clap::Args;

use crate::config::{Config, Key, Sources};

/// Options of `serve` and `check-config`. They are accepted before and after the command.
#[derive(Debug, Default, Clone, Args)]
pub(super) struct Options {
    #[command(flatten)]
    pub(super) settings: Settings,
    /// Same as --set http.listen=ADDRESS.
    #[arg(long, value_name = "ADDRESS")]
    pub(super) listen: Option<String>,
}

/// Options that set the configuration.
#[derive(Debug, Default, Clone, Args)]
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
        Self { settings, listen: None }
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
        }
    }

    /// Checks that no option sets a secret. clap does not check this, because its error message would repeat the value.
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
        Ok(())
    }

    /// Returns the sources of the configuration, with these options as the last one.
    pub(super) fn sources(self) -> Sources {
        Sources::from_process(self.settings.config, self.settings.set, self.listen)
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
    }

    #[test]
    fn a_value_is_the_text_after_the_first_equals_sign() {
        assert_eq!(key_and_value("http.listen=x=y"), Ok(("http.listen".to_owned(), "x=y".to_owned())));
        assert!(key_and_value("http.listen").is_err());
    }
}
