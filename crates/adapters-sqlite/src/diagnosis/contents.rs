use std::{thread, time::Duration};

use animal_store_app::Finding;
use tokio::{sync::oneshot, time::timeout};

use crate::{file::FileConnection, scalar::text};

/// Longest time of the check. It reads about a gigabyte in this time from a slow disk.
const LIMIT: Duration = Duration::from_mins(1);

/// The result is `ok`, or the first problems.
const CHECK: &str = "SELECT group_concat(quick_check, '; ') FROM (SELECT quick_check FROM pragma_quick_check LIMIT 10)";

const SUBJECT: &str = "sqlite.pages";

/// Reads all pages, on a thread of its own: a thread of the runtime would keep the program from ending.
pub(super) async fn check_pages(mut connection: FileConnection) -> Finding {
    let (sender, receiver) = oneshot::channel();
    thread::spawn(move || {
        let result = text(&mut connection, CHECK);
        // The file is closed before the result is reported. The receiver may have reached its limit.
        drop(connection);
        let _ = sender.send(result);
    });
    let advice = "restore a backup, or save what can be read with sqlite3 .recover";
    match timeout(LIMIT, receiver).await {
        Ok(Ok(Ok(result))) if result == "ok" => Finding::ok(SUBJECT, "all pages are valid"),
        Ok(Ok(Ok(result))) => Finding::error(SUBJECT, result, advice),
        Ok(Ok(Err(error))) => Finding::error(SUBJECT, error.to_string(), advice),
        Ok(Err(_)) => Finding::unknown(SUBJECT, "the check panicked", advice),
        Err(_) => {
            let found = format!("not all were read within {} seconds", LIMIT.as_secs());
            Finding::unknown(SUBJECT, found, "run `PRAGMA quick_check` with sqlite3")
        }
    }
}
