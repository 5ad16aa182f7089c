//! The audit log as Redis holds it: members of a sorted set, which begin with their times.

use std::time::SystemTime;

use animal_store_adapter_kit::audit_kept_since;
use animal_store_app::{ApiKey, AuditEntry, from_milliseconds, milliseconds};
use redis::{AsyncTypedCommands, Pipeline, pipe};

use crate::{
    connection::Connection,
    keyspace::{self, Keyspace, RedisFailure},
};

impl Keyspace {
    pub(super) async fn read_audit_log(&self) -> keyspace::Result<Vec<AuditEntry>> {
        let mut connection = self.connect().await?;
        let members = connection.zrange(&self.audit_log, 0, -1).await?;
        members.iter().map(|member| parse(member)).collect()
    }

    pub(super) async fn append_audit(
        &self,
        connection: &mut Connection,
        entries: &[AuditEntry],
        now: SystemTime,
    ) -> keyspace::Result<()> {
        let mut commands = pipe();
        self.add_to_audit_log(&mut commands, entries, now);
        let appended = commands.exec_async(connection).await;
        appended.map_err(RedisFailure::of_change)
    }

    /// Adds the commands that append entries, and that delete those that are no longer kept.
    pub(super) fn add_to_audit_log(
        &self,
        commands: &mut Pipeline,
        entries: &[AuditEntry],
        now: SystemTime,
    ) {
        for entry in entries {
            let at = milliseconds(entry.at);
            commands.zadd(&self.audit_log, member(entry), at).ignore();
        }
        let end = format!("({}", audit_kept_since(now));
        commands.zrembyscore(&self.audit_log, "-inf", end).ignore();
        let limit = isize::try_from(AuditEntry::LIMIT).unwrap_or(isize::MAX);
        commands
            .zremrangebyrank(&self.audit_log, 0, -1 - limit)
            .ignore();
    }
}

/// Returns the member of an entry. The user and the machine are last: they may contain anything.
fn member(entry: &AuditEntry) -> String {
    let ApiKey { id, label, scopes } = &entry.key;
    let at = milliseconds(entry.at);
    let expires = optional_time(entry.expires);
    let old_token_ends = optional_time(entry.old_token_ends);
    format!(
        "{at}\t{}\t{id}\t{label}\t{scopes}\t{expires}\t{old_token_ends}\t{}",
        entry.change, entry.by
    )
}

fn optional_time(time: Option<SystemTime>) -> String {
    time.map(|time| milliseconds(time).to_string())
        .unwrap_or_default()
}

/// Returns the entry of a member. It is safe to print.
fn parse(member: &str) -> keyspace::Result<AuditEntry> {
    let parts: Vec<_> = member.splitn(8, '\t').collect();
    let [at, change, id, label, scopes, expires, old_token_ends, by] = parts[..] else {
        return Err(malformed("a part is missing"));
    };
    let Some(at) = parse_time(at) else {
        return Err(malformed("the time is malformed"));
    };
    let entry = AuditEntry {
        at,
        by: by.to_owned(),
        change: change.to_owned(),
        key: ApiKey::from_stored(id, label, scopes).map_err(malformed)?,
        expires: parse_time(expires),
        old_token_ends: parse_time(old_token_ends),
    };
    Ok(entry.printable())
}

fn parse_time(text: &str) -> Option<SystemTime> {
    let time = text.parse().ok()?;
    Some(from_milliseconds(time))
}

fn malformed(problem: &str) -> RedisFailure {
    RedisFailure::Corrupt(format!("an entry of the audit log: {problem}"))
}
