use super::{HOUR, Keys, add, revoke, rotate};
use crate::{
    ApiKeyChange, ApiKeyRefusal, AuditEntry,
    test_support::{api_key, contract::whole_second},
};
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

/// The unit test of `AuditEntry` has what an entry says. A list shows no control characters.
pub async fn changes_are_recorded_but_not_imports_and_refusals(keys: Keys) {
    assert_eq!(keys.entries().await, []);
    let mut expected = Vec::new();
    let mut rotated = None;
    for (change, by) in [
        (add("a", "token-a", Some(HOUR)), "ann@one"),
        (rotate("a", "token-b", HOUR / 2), "bob@two"),
        (revoke("a"), "eve@three\tx"),
    ] {
        let changed = keys.store.change(change.clone(), by).await;
        let changed = changed.expect("changed");
        let entry = AuditEntry::of(&change, &changed, by).expect("an entry");
        expected.push(entry.printable());
        rotated = changed.after.or(rotated);
    }
    keys.assert_refused(revoke("a"), &ApiKeyRefusal::UnknownId)
        .await;
    let rotated = rotated.expect("the key existed");
    keys.change(ApiKeyChange::Import(rotated)).await;
    assert_eq!(keys.entries().await, expected);
}

/// The store has a change of its own in between.
pub async fn recorded_changes_of_another_store_are_listed_by_their_times(keys: Keys) {
    keys.add("b", "token-b", None).await;
    let own = keys.entries().await.remove(0);
    let old = created("a", DAY);
    let now = whole_second(SystemTime::now());
    let new = AuditEntry {
        at: now + HOUR,
        old_token_ends: Some(now),
        expires: Some(now + DAY),
        ..created("c", Duration::ZERO)
    };
    keys.store
        .append_audit(vec![new.clone(), old.clone()])
        .await
        .expect("add the entries");
    assert_eq!(keys.entries().await, [old, own, new]);
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
    let ids = entries.iter().map(|entry| entry.key.id.as_str());
    assert!(ids.eq(["old"]), "{entries:?}");

    let limit = AuditEntry::LIMIT;
    let entry = created("many", DAY);
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
