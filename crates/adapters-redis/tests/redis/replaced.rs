//! Other data in place of those that are known. Redis itself tells that names have changed.

use crate::prelude::*;

/// The lease does not end in this test.
#[tokio::test]
async fn of_data_that_are_replaced_only_their_own_keys_are_accepted() {
    for is_reloaded in [true, false] {
        let server = RedisServer::with("--enable-debug-command yes");
        let keys = Keys::with(&server.url(), long_lease());
        let other = RedisServer::start();
        Keys::with(&other.url(), long_lease())
            .add("key", "other")
            .await;
        if is_reloaded {
            // The file that the server reads again.
            keys.add("key", "other").await;
            server.run("SAVE");
            keys.revoke("key").await;
        }
        keys.add("key", "token").await;
        let directory = keys.directory().await;
        becomes(&directory, "token", Accepted).await;
        becomes(&directory, "other", Refused).await;
        if is_reloaded {
            server.run("DEBUG RELOAD NOSAVE");
        } else {
            server.run(&format!("REPLICAOF 127.0.0.1 {}", other.port()));
        }
        changes_to(&directory, "token", Refused).await;
        changes_to(&directory, "other", Accepted).await;
    }
}
