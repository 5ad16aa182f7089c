use std::process::Command;

use crate::programs;

/// Runs SQL with `psql` in the database of this URL or connection string. Returns the rows as lines, with `|` between
/// columns, or the error message.
pub(crate) fn psql(database: &str, sql: &str) -> Result<String, String> {
    // Debian's `psql` on the path is a slow script. The program itself is beside the server.
    let beside = programs::find("postgres")
        .canonicalize()
        .map(|server| server.with_file_name("psql"));
    let program = beside
        .ok()
        .filter(|file| file.is_file())
        .unwrap_or_else(|| "psql".into());
    let output = Command::new(program)
        .args(["-qAtX", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", sql])
        .output()
        .expect("psql runs; it is in Debian's package postgresql-client");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stderr))
    }
}
