//! Reading pets.

use super::{BulkAccess, all, id, rex};
use crate::ports::{AddedBulkPet, StorageSnapshot};

/// This holds for pets and for records.
pub async fn an_empty_storage_has_an_empty_snapshot(access: BulkAccess) {
    let mut snapshot = access.snapshot().await;
    assert_eq!(snapshot.pets(None, 10).await.expect("pets"), []);
    assert_eq!(snapshot.idempotency_records(None, 10).await.expect("records"), []);
}

/// A page may begin at any id, also before the last page.
pub async fn pages_of_a_snapshot_are_in_order_and_limited(access: BulkAccess) {
    access.add([9, 2, 5, 3, 4].map(rex)).await;
    let mut snapshot = access.snapshot().await;
    for (after, limit, expected) in [
        (None, 2, &[2, 3][..]),
        (Some(3), 2, &[4, 5]),
        (Some(5), 2, &[9]),
        (Some(9), 2, &[]),
        (Some(7), 5, &[9]),
        (Some(1), 5, &[2, 3, 4, 5, 9]),
        (None, 1, &[2]),
    ] {
        let page = snapshot.pets(after.map(id), limit).await.expect("pets");
        let ids: Vec<_> = page.iter().map(|stored| stored.pet.id().get()).collect();
        assert_eq!(ids, expected, "{limit} after {after:?}");
    }
}

/// Neither batches nor creates change it, even if nothing was read before.
pub async fn a_snapshot_does_not_change(access: BulkAccess) {
    access.add([1, 3].map(rex)).await;
    let mut snapshot = access.snapshot().await;
    let added = access.add([rex(2), rex(4)]).await;
    assert_eq!(added, [2, 4].map(|added| AddedBulkPet::Added(id(added))));
    let created = access.create("Later").await;

    assert_eq!(ids(&mut *snapshot).await, [1, 3]);
    access.add([rex(100)]).await;
    assert_eq!(ids(&mut *snapshot).await, [1, 3]);
    drop(snapshot);
    assert_eq!(access.ids().await, [1, 2, 3, 4, created.id().get(), 100]);
}

/// The creation time is when the pet was created.
pub async fn a_snapshot_contains_pets_of_the_repository(access: BulkAccess) {
    let pets = [access.create("a").await, access.create("b").await];
    let all = access.all().await;
    assert_eq!(all.iter().map(|stored| &stored.pet).collect::<Vec<_>>(), pets.iter().collect::<Vec<_>>());
    assert!(all[0].created_at <= all[1].created_at, "{all:?}");
}

async fn ids(snapshot: &mut dyn StorageSnapshot) -> Vec<i64> {
    all(snapshot).await.iter().map(|stored| stored.pet.id().get()).collect()
}
