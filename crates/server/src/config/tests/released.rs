//! From 0.1.0 on, an upgrade keeps the settings of a user.

use super::*;

/// The file has each setting with its default, as `animal-store config init` of the release prints it.
#[test]
fn the_configuration_of_a_release_is_accepted() {
    let released = file(include_str!("released-0.1.0.toml"));
    Config::load(&in_file(&released)).unwrap();
}
