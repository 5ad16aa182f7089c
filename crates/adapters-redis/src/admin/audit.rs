//! The audit log as Redis holds it: members of a sorted set, which begin with their times.

use std::time::SystemTime;

use animal_store_adapter_kit::{AuditRow, audit_entry, audit_kept_since, audit_row};
use animal_store_app::AuditEntry;
use redis::{Pipeline, cmd};

use crate::{
    connection::Connection,
    keyspace::{self, Keyspace, RedisFailure},
};

impl Keyspace {
    pub(super) async fn read_audit_log(
        &self,
        connection: &mut Connection,
    ) -> keyspace::Result<Vec<AuditEntry>> {
        let members: Vec<String> = cmd("ZRANGE")
            .arg(&self.audit_log)
            .arg(0)
            .arg(-1)
            .query_async(connection)
            .await?;
        let entry = |member: &String| {
            parse(member)
                .ok_or("it is malformed".to_owned())
                .and_then(audit_entry)
        };
        members
            .iter()
            .map(entry)
            .collect::<Result<_, _>>()
            .map_err(RedisFailure::Corrupt)
    }

    /// Adds the commands that append entries, and delete those that are no longer kept.
    pub(super) fn append_audit(
        &self,
        commands: &mut Pipeline,
        entries: impl IntoIterator<Item = AuditEntry>,
        now: SystemTime,
    ) {
        for entry in entries {
            let (at, by, change, id, label, scopes, expires, old_token_ends) = audit_row(entry);
            let [expires, old_token_ends] = [expires, old_token_ends]
                .map(|time| time.map_or_else(String::new, |time| time.to_string()));
            let member = [
                at.to_string(),
                change,
                id,
                label,
                scopes,
                expires,
                old_token_ends,
                by,
            ]
            .join("\t");
            commands
                .cmd("ZADD")
                .arg(&self.audit_log)
                .arg(at)
                .arg(member)
                .ignore();
        }
        let end = format!("({}", audit_kept_since(now));
        commands
            .cmd("ZREMRANGEBYSCORE")
            .arg(&self.audit_log)
            .arg("-inf")
            .arg(end)
            .ignore();
        let surplus = -1 - i64::from(AuditEntry::LIMIT);
        commands
            .cmd("ZREMRANGEBYRANK")
            .arg(&self.audit_log)
            .arg(0)
            .arg(surplus)
            .ignore();
    }
}

/// Returns the row of a member. The user and the machine are last: they may contain anything.
fn parse(member: &str) -> Option<AuditRow> {
    let mut parts = member.splitn(8, '\t').map(str::to_owned);
    let mut next = || parts.next();
    let (at, change, id, label, scopes) =
        (next()?.parse().ok()?, next()?, next()?, next()?, next()?);
    let [expires, old_token_ends] = [next()?, next()?].map(|time| time.parse().ok());
    Some((
        at,
        next()?,
        change,
        id,
        label,
        scopes,
        expires,
        old_token_ends,
    ))
}
