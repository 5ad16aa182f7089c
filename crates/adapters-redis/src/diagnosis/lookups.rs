use animal_store_app::{ApiKeyDigest, Finding};
use redis::{RedisResult, cmd};

use super::Inspected;
use crate::{
    connection::Connection,
    layout::Layout,
    lookup::{find_token, tracking_command},
};

pub(super) async fn inspect_tracking(mut connection: Connection, layout: &Layout) -> Inspected {
    tracking_command(layout).exec_async(&mut connection).await?;
    Ok(vec![Finding::ok("redis.tracking", "revoked keys are reported at once")])
}

/// Looks up a token that does not exist. Whether the user may change keys is known only if it may query its own
/// permissions, which the user in `docs/operations.md` may not.
pub(super) async fn inspect_permissions(mut connection: Connection, layout: &Layout) -> Inspected {
    let subject = "redis.permissions";
    let unknown = ApiKeyDigest::from_bytes([0; 32]);
    find_token(connection.clone(), layout, &unknown).await?;
    let token = layout.token(&unknown);
    let user: RedisResult<String> = cmd("ACL").arg("WHOAMI").query_async(&mut connection).await;
    if let Ok(user) = user {
        // Redis executes nothing.
        let mut dry_run = cmd("ACL");
        dry_run.arg("DRYRUN").arg(&user).arg("HSET").arg(token).arg("id").arg("x");
        let outcome: RedisResult<String> = dry_run.query_async(&mut connection).await;
        if outcome.is_ok_and(|outcome| outcome == "OK") {
            let found = format!("the user {user:?} may change API keys, and an instance only reads them");
            let advice = "create the user of \"Users of Redis\" in docs/operations.md";
            return Ok(vec![Finding::warning(subject, found, advice)]);
        }
    }
    Ok(vec![Finding::ok(subject, "API keys can be looked up")])
}

pub(super) async fn inspect_index(mut connection: Connection, layout: &Layout) -> Inspected {
    let subject = "redis.index";
    let exists: bool = cmd("EXISTS").arg(&layout.index).query_async(&mut connection).await?;
    Ok(vec![if exists {
        Finding::ok(subject, layout.index.as_str())
    } else {
        let found = format!("{} does not exist: every request gets 401", layout.index);
        let advice = "create a key with `animal-store keys create`; if there were keys, Redis has lost its data, or \
                      keys.redis.prefix or the database in keys.redis.url differs";
        Finding::warning(subject, found, advice)
    }])
}
