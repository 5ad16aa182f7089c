use super::{HOUR, Keys, add, revoke, rotate, whole_second};
use crate::{ApiKeyChange, AuditEntry, test_support::api_key};
use std::time::{Duration, SystemTime};

const DAY: Duration = Duration::from_hours(24);

impl Keys {
    async fn entries(&self) -> Vec<AuditEntry> {
        self.store.audit_log().await.expect("list the changes")
    }
}

/// Returns the entry of a creation this long ago.
fn created(id: &str, age: Duration) -> AuditEntry {
    let at = whole_second(SystemTime::now() - age);
    let [by, change] = ["root@host", "create"].map(str::to_owned);
    AuditEntry {
        at,
        by,
        change,
        key: api_key(id),
        expires: None,
        old_token_ends: None,
    }
}

/// An entry has the user, the machine, the key, and the times of its tokens.
pub async fn changes_are_recorded_but_not_imports_and_refusals(keys: Keys) {
    assert_eq!(keys.entries().await, []);
    let added = keys
        .store
        .change(add("a", "token-a", Some(HOUR)), "ann@one")
        .await
        .expect("add");
    let rotated = keys
        .store
        .change(rotate("a", "token-b", HOUR / 2), "bob@two")
        .await
        .expect("rotate");
    keys.store
        .change(add("a", "token-c", None), "bob@two")
        .await
        .expect_err("the id is taken");
    let key = rotated.after.clone().expect("the key exists");
    keys.change(ApiKeyChange::Import(key.clone())).await;
    keys.store
        .change(revoke("a"), "eve@three\tx")
        .await
        .expect("revoke");
    keys.change(ApiKeyChange::Import(key)).await;

    let entries = keys.entries().await;
    let changes: Vec<_> = entries
        .iter()
        .map(|entry| (&*entry.change, &*entry.by))
        .collect();
    assert_eq!(
        changes,
        [
            ("create", "ann@one"),
            ("rotate", "bob@two"),
            ("revoke", "eve@three?x")
        ]
    );
    assert!(
        entries.iter().all(|entry| entry.key == api_key("a")),
        "{entries:?}"
    );
    assert!(
        entries[0].at <= added.at && added.at < entries[0].at + Duration::from_millis(1),
        "{entries:?}"
    );
    let end = added.after.expect("the key exists").tokens[0].expires;
    let ends: Vec<_> = entries
        .iter()
        .map(|entry| (entry.expires, entry.old_token_ends))
        .collect();
    assert_eq!(
        ends,
        [
            (end, None),
            (end, Some(rotated.old_tokens_end())),
            (None, None)
        ]
    );
}

/// The store has a change of its own in between.
pub async fn recorded_changes_of_another_store_are_listed_by_their_times(keys: Keys) {
    keys.add("b", "token-b", None).await;
    let (own, [old, new]) = (
        keys.entries().await,
        [created("a", DAY), created("c", Duration::ZERO)],
    );
    let new = AuditEntry {
        at: new.at + HOUR,
        old_token_ends: Some(new.at),
        expires: Some(new.at + DAY),
        ..new
    };
    keys.store
        .append_audit(vec![new.clone(), old.clone()])
        .await
        .expect("add the entries");
    assert_eq!(keys.entries().await, [old, own[0].clone(), new]);
}

/// A change deletes the other entries.
pub async fn the_last_ten_thousand_changes_of_a_year_are_kept(keys: Keys) {
    keys.store
        .append_audit(vec![
            created("old", 364 * DAY),
            created("expired", 366 * DAY),
        ])
        .await
        .expect("add");
    let entries = keys.entries().await;
    assert_eq!(
        entries
            .iter()
            .map(|entry| entry.key.id.as_str())
            .collect::<Vec<_>>(),
        ["old"]
    );

    let (limit, entry) = (AuditEntry::LIMIT, created("many", DAY));
    let many = (1..limit).map(|number| AuditEntry {
        at: entry.at - Duration::from_secs(number.into()),
        ..entry.clone()
    });
    keys.store.append_audit(many.collect()).await.expect("add");
    assert_eq!(keys.entries().await[0].key, api_key("old"));
    keys.add("new", "token", None).await;
    let entries = keys.entries().await;
    assert_eq!(entries.len(), limit.into());
    assert_eq!(
        [&entries[0].key, &entries.last().expect("an entry").key],
        [&api_key("many"), &api_key("new")]
    );
}
