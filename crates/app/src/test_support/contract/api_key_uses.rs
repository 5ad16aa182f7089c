//! The contract of [`ApiKeyUses`], and of a store that lists the uses.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::{
    ApiKeyId,
    ports::{ApiKeyStore, ApiKeyUse, ApiKeyUses, RecordedUses},
    test_support::{
        api_key_id,
        key_changes::{add, revoke},
        wait_until,
    },
};

/// Writes one test for each rule of the contract. `setup` is an async function that returns [`Uses`] over an empty
/// store, and a guard that is dropped after the test.
#[macro_export]
macro_rules! api_key_uses_contract {
    ($setup:expr) => {
        $crate::contract_tests!(
            api_key_uses, $setup();
            a_noted_use_is_listed_with_its_time,
            uses_of_a_revoked_key_are_not_listed_even_if_it_comes_back,
        );
    };
}

/// The records of two instances, which write often, and their common store.
pub struct Uses {
    /// Notes uses, one record for each instance.
    pub instances: [Arc<dyn ApiKeyUses>; 2],
    /// Lists the uses.
    pub store: Arc<dyn ApiKeyStore>,
}

const MINUTE: Duration = Duration::from_mins(1);

impl Uses {
    async fn add(&self, id: &str) -> ApiKeyId {
        self.store
            .change(add(id, &format!("token-of-{id}"), None), "test")
            .await
            .expect("add");
        api_key_id(id)
    }

    async fn last(&self, id: &ApiKeyId, kind: ApiKeyUse) -> Option<SystemTime> {
        self.store
            .list_uses()
            .await
            .expect("list the uses")
            .last(id, kind)
    }

    /// Notes a use, which is written with a delay. Returns its time when it is listed.
    async fn note(&self, instance: usize, id: &ApiKeyId, kind: ApiKeyUse) -> SystemTime {
        self.instances[instance].note(id, kind);
        wait_until(id.as_str(), async || self.last(id, kind).await.is_some()).await;
        self.last(id, kind).await.expect("the use")
    }
}

/// The time is that of the write, to the minute. Other keys and kinds are not affected. Every instance records uses.
pub async fn a_noted_use_is_listed_with_its_time(uses: Uses) {
    let id = uses.add("a").await;
    let other = uses.add("b").await;
    assert_eq!(
        uses.store.list_uses().await.expect("list the uses"),
        RecordedUses::default()
    );
    let before = SystemTime::now();
    let time = uses.note(0, &id, ApiKeyUse::GetPet).await;
    assert!(
        before - MINUTE <= time && time <= SystemTime::now(),
        "{time:?}"
    );
    let recorded = uses.store.list_uses().await.expect("list the uses");
    assert_eq!(
        recorded,
        RecordedUses {
            since: Some(time),
            last: [((id.clone(), ApiKeyUse::GetPet), time)].into()
        }
    );

    uses.note(1, &other, ApiKeyUse::Request).await;
    assert_eq!(uses.last(&id, ApiKeyUse::Request).await, None);
    uses.note(1, &id, ApiKeyUse::Request).await;
    assert!(uses.last(&id, ApiKeyUse::GetPet).await.is_some());
}

/// A request that was authenticated before the revocation may note a use after it. A copy brings a key back.
pub async fn uses_of_a_revoked_key_are_not_listed_even_if_it_comes_back(uses: Uses) {
    let id = uses.add("a").await;
    let other = uses.add("b").await;
    for id in [&id, &other] {
        uses.note(0, id, ApiKeyUse::Request).await;
    }
    uses.store
        .change(revoke(id.as_str()), "test")
        .await
        .expect("revoke");
    assert_eq!(uses.last(&id, ApiKeyUse::Request).await, None);

    uses.instances[1].note(&id, ApiKeyUse::GetPet);
    uses.note(1, &other, ApiKeyUse::GetPet).await;
    assert_eq!(uses.last(&id, ApiKeyUse::GetPet).await, None);
    uses.add("a").await;
    for kind in ApiKeyUse::ALL {
        assert_eq!(uses.last(&id, kind).await, None);
    }
}
