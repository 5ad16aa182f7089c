//! The part of `animal-store doctor` about the file.
//!
//! **Problem.** Damage, a missing log, a full disk or wrong permissions are found by the request that fails.
//!
//! **Invariant.** The diagnosis changes no pet, no key and no schema, and creates no file. It works beside a running
//! server. The check of all pages ends within a minute: a subject that cannot be examined hides no other.
//!
//! **Proof.** `tests/sqlite/diagnosis.rs`.

mod contents;
mod surroundings;

use std::{path::Path, time::Duration};

use animal_store_app::Finding;

use crate::{SqliteFile, SqliteFileError, file::check_contents, schema::compare};

/// Examines the file. The timeout applies to each wait for another process.
pub async fn diagnose(path: &Path, timeout: Duration) -> Vec<Finding> {
    if !path.exists() {
        let found = format!("{} does not exist", path.display());
        return vec![Finding::warning("sqlite.file", found, "the next start creates it")];
    }
    let file = match SqliteFile::open_unchecked(path, timeout) {
        Ok(file) => file,
        Err(error) => return vec![refused(&error)],
    };
    let surroundings = [
        surroundings::permissions(path),
        surroundings::disk(path),
        surroundings::log(path),
        surroundings::processes(&file),
    ];
    let mut connection = match file.connect() {
        Ok(connection) => connection,
        Err(error) => {
            let mut findings = vec![Finding::ok("sqlite.file", path.display().to_string())];
            findings.extend(surroundings);
            findings.push(not_examined("sqlite.migrations", error));
            return findings;
        }
    };
    let comparison = compare(&mut connection);
    // A start checks the contents after its migrations.
    let is_current = comparison.as_ref().is_ok_and(|schema| schema.pending.is_empty() && schema.contracted.is_empty());
    let contents = if is_current { check_contents(path, &mut connection) } else { Ok(()) };
    let mut findings = vec![match contents {
        Ok(()) => Finding::ok("sqlite.file", path.display().to_string()),
        Err(error) => refused(&error),
    }];
    findings.extend(surroundings);
    findings.push(match comparison {
        Ok(comparison) if !comparison.contracted.is_empty() => {
            let error = SqliteFileError::Newer { path: path.to_owned(), migrations: comparison.contracted };
            Finding::error(
                "sqlite.migrations",
                error.to_string(),
                "run the release that made these changes, or a later one",
            )
        }
        Ok(comparison) if !comparison.pending.is_empty() => {
            let found = format!("pending: {}", comparison.pending.join(", "));
            Finding::warning("sqlite.migrations", found, "the next start runs them")
        }
        Ok(comparison) if !comparison.newer.is_empty() => {
            let found = format!("a newer program has expanded the schema: {}", comparison.newer.join(", "));
            Finding::warning("sqlite.migrations", found, "upgrade this program")
        }
        Ok(_) => Finding::ok("sqlite.migrations", "none is pending"),
        Err(error) => not_examined("sqlite.migrations", error),
    });
    findings.push(contents::check_pages(connection).await);
    findings
}

fn refused(error: &SqliteFileError) -> Finding {
    Finding::error("sqlite.file", error.to_string(), "resolve this: the service does not start")
}

fn not_examined(subject: &'static str, error: impl std::fmt::Display) -> Finding {
    Finding::unknown(subject, format!("not examined: {error}"), "resolve this error, and run the command again")
}
