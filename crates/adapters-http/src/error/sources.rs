use std::{error::Error, iter::successors};

/// Describes an error and its sources, from the outermost to the innermost, for the log.
pub(crate) fn with_sources(error: &(dyn Error + 'static)) -> String {
    successors(Some(error), |&error| error.source()).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
