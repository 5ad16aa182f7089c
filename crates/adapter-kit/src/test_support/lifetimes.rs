//! What changes write and delete: tokens, their numbers, and entries of the audit log.

use std::time::{Duration, UNIX_EPOCH};

use animal_store_app::{
    ApiKeyChange, ApiKeyDigest, IssuedApiKey, milliseconds,
    ports::ApiKeyStore,
    test_support::{
        api_key,
        key_changes::{add, new_token, revoke, rotate},
    },
};

use super::SqlKeys;
use crate::{ClockReadings, KeyDatabase};

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// Every token expires in 1970.
const EXPIRE: &str = "UPDATE api_key_tokens SET expires_at = 1";

impl<D: KeyDatabase> SqlKeys<D> {
    /// Asserts that the state has the numbers of rows. A directory that starts would refuse the keys otherwise.
    fn assert_counted(&self) {
        let counted = (self.number)("SELECT keys * 1000 + tokens FROM api_key_state");
        let found =
            "SELECT (SELECT count(*) FROM api_keys) * 1000 + (SELECT count(*) FROM api_key_tokens)";
        assert_eq!(counted, (self.number)(found));
    }

    async fn valid_tokens(&self) -> Vec<ApiKeyDigest> {
        let listed = self.list().await.expect("listed");
        let tokens = listed.iter().flat_map(|key| &key.tokens);
        tokens.map(|token| token.digest).collect()
    }

    /// Moves all stored times by this number of days.
    fn move_times(&self, days: i64) {
        let by = days * 24 * 60 * 60 * 1000;
        (self.execute)(&format!(
            "UPDATE api_key_tokens SET created_at = created_at + {by}, expires_at = expires_at + {by};
            UPDATE api_key_changes SET at = at + {by};
            UPDATE api_key_readings SET at = at + {by}"
        ));
    }
}

/// Neither the keys of today count, nor those of before.
pub async fn a_first_key_is_added_before_any_change_only<D: KeyDatabase>(keys: SqlKeys<D>) {
    let add_first = async |id: &str| {
        let token = new_token(id, None);
        let added = keys.add_first(api_key(id), token, "test").await;
        added.expect("no failure")
    };
    assert!(add_first("first").await);
    assert!(!add_first("second").await);
    keys.revoke("first").await;
    assert!(!add_first("first").await);
    assert!(keys.listed_ids().await.is_empty());
}

/// One reading of a clock deletes nothing, and neither does a later one soon after it.
pub async fn expired_tokens_are_deleted_by_a_change_a_month_after_one_that_found_them<
    D: KeyDatabase,
>(
    keys: SqlKeys<D>,
) {
    keys.add(&["a"]).await;
    (keys.execute)(EXPIRE);
    for (id, days, left) in [("b", 0, 2), ("c", 29, 3), ("d", 31, 3)] {
        let age = Duration::from_hours(24 * days).as_millis();
        (keys.execute)(&format!("UPDATE api_key_readings SET at = at - {age}"));
        keys.add(&[id]).await;
        let tokens = (keys.number)("SELECT count(*) FROM api_key_tokens");
        assert_eq!(tokens, left, "{id}");
        keys.assert_counted();
    }
    assert_eq!(keys.listed_ids().await, ["b", "c", "d"]);
}

/// One reading every eight hours for forty days leaves one or two a day of the last thirty.
pub async fn readings_of_a_clock_are_thinned_out_and_forgotten<D: KeyDatabase>(keys: SqlKeys<D>) {
    // Its reading is later than all others.
    keys.add(&["a"]).await;
    let record = |time| (keys.execute)(&ClockReadings::of_keys(time).record().join("; "));
    for hours in (8..=40 * 24).step_by(8) {
        record(UNIX_EPOCH + Duration::from_hours(hours));
    }
    let count = (keys.number)("SELECT count(*) FROM api_key_readings");
    assert!((30..=60).contains(&count), "{count}");
    let latest = (keys.number)("SELECT max(at) FROM api_key_readings");
    assert_eq!(latest, milliseconds(UNIX_EPOCH + 40 * DAY));
}

/// The key of a change may have such tokens as well.
pub async fn a_clock_that_is_ahead_during_one_change_deletes_no_valid_token_and_no_entry<
    D: KeyDatabase,
>(
    keys: SqlKeys<D>,
) {
    keys.add(&["other"]).await;
    for change in [
        add("kept", "kept", Some(90 * DAY)),
        add("mixed", "m1", None),
        rotate("mixed", "m2", 80 * DAY),
    ] {
        keys.make(change).await;
    }
    keys.save("right");
    let before = keys.valid_tokens().await;
    let other = new_token("other", None).digest;
    for days in [200, 400] {
        for wrong in [
            revoke("other"),
            add("new", "new", None),
            rotate("mixed", "m3", HOUR),
        ] {
            keys.restore("right");
            // As if the clock went forward.
            keys.move_times(-days);
            keys.make(wrong).await;
            keys.move_times(days);
            keys.add(&["last"]).await;
            let after = keys.valid_tokens().await;
            let lost = before.iter().find(|token| !after.contains(token));
            assert!(lost.is_none_or(|digest| *digest == other), "{lost:?}");
            let entries = keys.audit_log().await.expect("listed");
            assert_eq!(entries.len(), 6, "{entries:?}");
            keys.assert_counted();
        }
    }
}

/// A token that has expired can be that of another key, and of its own one again.
pub async fn after_each_change_the_state_has_the_numbers_of_keys_and_tokens<D: KeyDatabase>(
    keys: SqlKeys<D>,
) {
    let change = async |change| {
        keys.make(change).await;
        keys.assert_counted();
    };
    let imported = |keys: &[IssuedApiKey]| ApiKeyChange::Import(keys[0].clone());
    change(add("a", "1", None)).await;
    change(rotate("a", "2", HOUR)).await;
    change(rotate("a", "3", Duration::ZERO)).await;
    let list = keys.list().await.expect("listed");
    change(imported(&list)).await;
    change(revoke("a")).await;
    change(imported(&list)).await;
    for id in ["b", "c", "c"] {
        (keys.execute)(EXPIRE);
        change(add(id, "3", None)).await;
    }
    // An older program changes the version only.
    (keys.execute)("DELETE FROM api_key_tokens; UPDATE api_key_state SET version = version + 1");
    change(add("d", "5", None)).await;
}

/// The clock may be wrong.
pub async fn a_revocation_deletes_tokens_that_look_expired<D: KeyDatabase>(keys: SqlKeys<D>) {
    keys.add(&["key"]).await;
    keys.make(rotate("key", "new", HOUR)).await;
    (keys.execute)(&format!("{EXPIRE} WHERE expires_at IS NOT NULL"));
    keys.revoke("key").await;
    assert_eq!((keys.number)("SELECT count(*) FROM api_key_tokens"), 0);
}
