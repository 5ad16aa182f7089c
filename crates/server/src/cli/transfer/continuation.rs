use std::env;

use crate::cli::options::quoted;

/// Returns the command line of this process for a shell, with further arguments. It contains no secret: no option of a
/// command takes one.
pub(in crate::cli) fn command_line(further: &[&str]) -> String {
    let args = env::args_os().map(|arg| arg.to_string_lossy().into_owned());
    let further = further.iter().map(|&arg| arg.to_owned());
    args.chain(further).map(|arg| quoted(&arg)).collect::<Vec<_>>().join(" ")
}
