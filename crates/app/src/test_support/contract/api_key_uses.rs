//! The contract of [`ApiKeyUses`], and of a store that lists the uses.
#![expect(clippy::missing_panics_doc, reason = "a rule panics if the adapter breaks it")]

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use crate::{
    ApiKeyChange, ApiKeyId, ApiToken, NewToken,
    ports::{ApiKeyStore, ApiKeyUse, ApiKeyUses, LastUses},
    test_support::{api_key, join_tasks},
};

/// Writes one test for each rule of the contract. `setup` is an async function that returns [`Uses`] over an empty
/// store, and a guard that is dropped after the test.
#[macro_export]
macro_rules! api_key_uses_contract {
    ($setup:path) => {
        $crate::contract_tests!(
            api_key_uses, $setup();
            nothing_is_recorded_without_a_use,
            a_noted_use_is_listed_with_its_time,
            a_use_of_getpet_is_recorded_separately,
            every_instance_records_uses,
            uses_of_a_revoked_key_are_not_listed,
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

/// Long enough for any operation on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);
const MINUTE: Duration = Duration::from_mins(1);

impl Uses {
    async fn add(&self, id: &str) -> ApiKeyId {
        let token = ApiToken::parse(format!("token-of-{id}").into()).expect("a token");
        let key = api_key(id);
        self.store.change(ApiKeyChange::Add(key.clone(), NewToken::new(&token, None))).await.expect("add");
        key.id
    }

    async fn last(&self, id: &ApiKeyId) -> LastUses {
        self.store.list_uses().await.expect("list the uses").last(id)
    }

    /// Waits for this use of the key, which is written with a delay.
    async fn wait_for(&self, id: &ApiKeyId, is_expected: impl Fn(LastUses) -> bool) -> LastUses {
        let start = Instant::now();
        loop {
            let last = self.last(id).await;
            if is_expected(last) {
                return last;
            }
            assert!(start.elapsed() < TIMEOUT, "{id}: {last:?}");
            tokio::task::yield_now().await;
        }
    }
}

/// The record has not started.
pub async fn nothing_is_recorded_without_a_use(uses: Uses) {
    let id = uses.add("key").await;
    let recorded = uses.store.list_uses().await.expect("list the uses");
    assert_eq!((recorded.since, recorded.last(&id)), (None, LastUses::default()));
}

/// The time is that of the write, to the minute. Other keys are not affected.
pub async fn a_noted_use_is_listed_with_its_time(uses: Uses) {
    let (id, other) = (uses.add("a").await, uses.add("b").await);
    let before = SystemTime::now();
    uses.instances[0].note(&id, ApiKeyUse::Request);

    let last = uses.wait_for(&id, |last| last.request.is_some()).await;
    let time = last.request.expect("a use");
    assert!(before - MINUTE <= time && time <= SystemTime::now(), "{time:?}");
    assert_eq!(last.get_pet, None);
    assert_eq!(uses.last(&other).await, LastUses::default());
    assert_eq!(uses.store.list_uses().await.expect("list the uses").since, Some(time));
}

/// The note of a request is another one.
pub async fn a_use_of_getpet_is_recorded_separately(uses: Uses) {
    let id = uses.add("key").await;
    uses.instances[0].note(&id, ApiKeyUse::GetPet);
    let last = uses.wait_for(&id, |last| last.get_pet.is_some()).await;
    assert_eq!(last.request, None);
    uses.instances[0].note(&id, ApiKeyUse::Request);
    uses.wait_for(&id, |last| last.get_pet.is_some() && last.request.is_some()).await;
}

/// No note is lost if two instances note many at the same time.
pub async fn every_instance_records_uses(uses: Uses) {
    let mut ids = Vec::new();
    for number in 0..100 {
        ids.push(uses.add(&format!("key-{number}")).await);
    }
    join_tasks(ids.iter().cloned().enumerate().map(|(number, id)| {
        let instance = Arc::clone(&uses.instances[number % 2]);
        async move { instance.note(&id, ApiKeyUse::Request) }
    }))
    .await;
    for id in &ids {
        uses.wait_for(id, |last| last.request.is_some()).await;
    }
}

/// A request that was authenticated before the revocation may note a use after it.
pub async fn uses_of_a_revoked_key_are_not_listed(uses: Uses) {
    let (id, other) = (uses.add("a").await, uses.add("b").await);
    for id in [&id, &other] {
        uses.instances[0].note(id, ApiKeyUse::Request);
        uses.wait_for(id, |last| last.request.is_some()).await;
    }
    uses.store.change(ApiKeyChange::Revoke(id.clone())).await.expect("revoke");
    assert_eq!(uses.last(&id).await, LastUses::default());

    uses.instances[1].note(&id, ApiKeyUse::GetPet);
    uses.instances[1].note(&other, ApiKeyUse::GetPet);
    uses.wait_for(&other, |last| last.get_pet.is_some()).await;
    assert_eq!(uses.last(&id).await, LastUses::default());
}
