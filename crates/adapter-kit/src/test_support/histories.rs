//! Another store in place of the known one, and changes by programs that write no marks.

use animal_store_app::test_support::wait_until;

use super::{SqlKeys, TABLES, clear, fill, is_accepted, is_unavailable, wait_for};
use crate::KeyDatabase;

/// The version of the other store is smaller, the same, or greater. It may be an older state of the known one, with
/// other changes.
pub async fn a_store_in_place_of_the_known_one_has_only_its_own_keys<D: KeyDatabase>(
    keys: SqlKeys<D>,
) {
    keys.save("empty");
    for (number, [common, lost, own]) in [
        [&[][..], &["s1", "s2"], &["p1", "p2", "p3"]],
        [&[], &["s1", "s2", "s3"], &["p1", "p2", "p3"]],
        [&[], &["s1", "s2", "s3", "s4"], &["p1", "p2", "p3"]],
        [&["kept", "more"], &["s1"], &[]],
        [&["kept", "more"], &["s1"], &["p1"]],
        [&["kept", "more"], &["s1"], &["p1", "p2", "p3"]],
    ]
    .into_iter()
    .enumerate()
    {
        let [before, known, other] =
            ["before", "known", "other"].map(|name| format!("{name}_{number}"));
        keys.restore("empty");
        keys.add(common).await;
        keys.save(&before);
        keys.add(lost).await;
        keys.save(&known);
        keys.restore(&before);
        keys.add(own).await;
        keys.save(&other);

        keys.restore(&known);
        let directory = keys.directory();
        for id in lost {
            wait_for(&directory, id, true).await;
        }
        keys.restore(&other);
        for id in lost {
            wait_for(&directory, id, false).await;
        }
        let mut kept = [common, own].concat();
        for id in &kept {
            assert!(is_accepted(&directory, id).await, "{id}");
        }
        // Increments are read along the new history.
        let revoked = kept.remove(0);
        keys.revoke(revoked).await;
        wait_for(&directory, revoked, false).await;
        for id in kept {
            assert!(is_accepted(&directory, id).await, "{id}");
        }
    }
}

/// A dump has the state before the keys, and jobs of one restore finish in any order. A directory that starts between
/// two steps believes nothing either.
pub async fn a_store_that_is_being_restored_has_no_key_until_it_is_complete<D: KeyDatabase>(
    keys: SqlKeys<D>,
) {
    keys.save("empty");
    keys.add(&["p1", "p2"]).await;
    keys.save("other");
    for order in [[0, 1, 2, 3], [1, 0, 2, 3], [2, 3, 1, 0], [2, 0, 1, 3]] {
        keys.restore("empty");
        keys.add(&["s1"]).await;
        let directory = keys.directory();
        wait_for(&directory, "s1", true).await;
        (keys.execute)(&clear());
        for table in order {
            wait_until("it fails", async || is_unavailable(&directory).await).await;
            assert!(
                is_unavailable(&keys.directory()).await,
                "{order:?}, {table}"
            );
            (keys.execute)(&fill(TABLES[table], "other"));
        }
        for (id, expected) in [("p1", true), ("p2", true), ("s1", false)] {
            wait_for(&directory, id, expected).await;
        }
    }
}

/// Such a program changes the version only. It may also delete rows of keys that it does not change.
pub async fn after_a_change_by_an_older_program_all_keys_are_read<D: KeyDatabase>(
    keys: SqlKeys<D>,
) {
    let directory = keys.directory();
    keys.add(&["a", "b", "c"]).await;
    for id in ["a", "b", "c"] {
        wait_for(&directory, id, true).await;
    }
    let older = |id: &str, deleted: &str| {
        (keys.execute)(&format!(
            "BEGIN; UPDATE api_key_state SET version = version + 1;
            DELETE FROM api_key_tokens WHERE api_key_id IN ({deleted});
            UPDATE api_keys SET version = (SELECT version FROM api_key_state) WHERE id = '{id}';
            COMMIT"
        ));
    };
    older("a", "'a'");
    wait_for(&directory, "a", false).await;
    older("b", "'b', 'c'");
    keys.add(&["d"]).await;
    wait_for(&directory, "d", true).await;
    for id in ["a", "b", "c"] {
        assert!(!is_accepted(&directory, id).await, "{id}");
    }
}

/// With them, a directory reads the changes only.
pub async fn the_marks_of_the_last_thousand_changes_are_kept<D: KeyDatabase>(keys: SqlKeys<D>) {
    keys.add(&["first"]).await;
    for (version, id) in [(10, "a"), (5000, "b")] {
        (keys.execute)(&format!("UPDATE api_key_state SET version = {version}"));
        keys.add(&[id]).await;
    }
    let oldest = (keys.number)("SELECT min(version) FROM api_key_marks");
    assert_eq!(oldest, 5001);
}
