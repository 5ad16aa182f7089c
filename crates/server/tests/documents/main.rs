//! What the documents name exists, and a test runs the commands that they show.

mod commands;
mod links;
mod logging;
mod names;
mod texts;
