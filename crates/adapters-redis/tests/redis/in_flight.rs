//! A key that is revoked while Redis' answer about it is on its way.

use std::{sync::Arc, time::Instant};

use animal_store_adapters_redis::RedisApiKeyDirectory;
use animal_store_app::ApiKey;
use animal_store_test_servers::{FaultProxy, RedisServer};
use futures_util::FutureExt;
use tokio::task::JoinHandle;

use crate::{
    keys::{Keys, PATIENCE, find, name, patient},
    uses::a_moment,
};

struct InFlight {
    directory: Arc<RedisApiKeyDirectory>,
    link: FaultProxy,
    keys: Keys,
    key: ApiKey,
    look_up: JoinHandle<Option<Arc<ApiKey>>>,
    server: RedisServer,
}

/// Redis has answered a look-up, and the answer is held up.
async fn answer_on_its_way() -> InFlight {
    let server = RedisServer::start();
    let link = FaultProxy::to(server.port());
    link.hold("label of key");
    let keys = Keys::at(&server.url(), patient());
    let directory = Arc::new(Keys::at(&format!("redis://{}", link.address()), patient()).directory().await);
    let key = keys.add("key", "token").await;
    for witness in ["before", "after"] {
        wait_for(|| find(&directory, witness).now_or_never().is_some()).await;
    }
    reports_arrive(&directory, &server, "before").await;
    let look_up = begin(&directory);
    wait_for(|| link.held() == 1).await;
    InFlight { directory, link, keys, key, look_up, server }
}

/// Has another token changed and waits until the cache knows: then it knows of everything that was changed before.
async fn reports_arrive(directory: &RedisApiKeyDirectory, server: &RedisServer, witness: &str) {
    server.command(&["DEL", &name("shop:", witness)]);
    server.command(&["SET", &name("shop:", witness), "changed"]);
    wait_for(|| find(directory, witness).now_or_never().is_none()).await;
}

fn begin(directory: &Arc<RedisApiKeyDirectory>) -> JoinHandle<Option<Arc<ApiKey>>> {
    let directory = Arc::clone(directory);
    tokio::spawn(async move { find(&directory, "token").await.expect("find") })
}

async fn wait_for(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "it does not come to that");
        a_moment().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_from_before_a_revocation_is_not_kept_after_it() {
    let InFlight { directory, mut link, keys, key, look_up, server } = answer_on_its_way().await;
    keys.revoke(&key).await;
    reports_arrive(&directory, &server, "after").await;
    link.heal();

    assert_eq!(look_up.await.expect("the look-up").as_deref(), Some(&key), "it was so when Redis was asked");
    assert_eq!(find(&directory, "token").await.expect("find"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_up_from_after_a_revocation_does_not_share_an_answer_from_before_it() {
    let InFlight { directory, mut link, keys, key, look_up, server } = answer_on_its_way().await;
    keys.revoke(&key).await;
    reports_arrive(&directory, &server, "after").await;
    let later = begin(&directory);
    assert_eq!(link.held(), 1);
    link.heal();

    assert_eq!(later.await.expect("the look-up"), None);
    look_up.await.expect("the look-up");
    assert_eq!(find(&directory, "token").await.expect("find"), None);
}

/// Nor does it take away the right to be kept that a later answer has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_from_before_a_change_does_not_take_the_place_of_one_from_after_it() {
    let InFlight { directory, mut link, keys, key, look_up, server } = answer_on_its_way().await;
    keys.revoke(&key).await;
    let again = keys.add("key-again", "token").await;
    reports_arrive(&directory, &server, "after").await;
    let later = begin(&directory);
    link.heal();

    assert_eq!(look_up.await.expect("the look-up").as_deref(), Some(&key));
    assert_eq!(later.await.expect("the look-up").as_deref(), Some(&again));
    let before = server.command_counts();
    for _ in 0..100 {
        assert_eq!(find(&directory, "token").await.expect("find").as_deref(), Some(&again));
    }
    assert_eq!(server.command_counts(), before, "it was not kept");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_from_before_redis_was_emptied_is_not_kept_after_it() {
    let InFlight { directory, mut link, look_up, server, .. } = answer_on_its_way().await;
    server.command(&["FLUSHALL"]);
    reports_arrive(&directory, &server, "after").await;
    link.heal();

    look_up.await.expect("the look-up");
    assert_eq!(find(&directory, "token").await.expect("find"), None);
}
