//! `animal-store`: see `animal-store --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    animal_store_server::cli::run()
}
