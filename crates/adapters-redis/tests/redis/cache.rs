//! What is kept in the process, and for how long.

use std::{sync::Arc, time::Duration};

use animal_store_adapters_redis::{RedisApiKeyDirectory, RedisSettings};
use animal_store_test_servers::RedisServer;

use crate::{
    keys::{Keys, Linked, calls, name, patient},
    uses::{Accepted, Refused, ask, comes_to, soon_comes_to},
};

struct Cached {
    directory: Arc<RedisApiKeyDirectory>,
    keys: Keys,
    server: RedisServer,
}

impl Cached {
    async fn with(settings: RedisSettings) -> Self {
        let server = RedisServer::start();
        let keys = Keys::at(&server.url(), settings);
        Self { directory: Arc::new(keys.directory().await), keys, server }
    }

    async fn new() -> Self {
        Self::with(patient()).await
    }

    /// What Redis did but for signs of life.
    fn work(&self) -> String {
        let counts = self.server.command_counts();
        counts.lines().filter(|count| !count.starts_with("cmdstat_ping:")).collect::<Vec<_>>().join("\n")
    }

    /// Until the reports of what was changed before have been taken up: then answers are kept.
    async fn use_until_kept(&self, token: &str) {
        loop {
            let before = self.work();
            ask(&self.directory, token).await;
            if self.work() == before {
                return;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_up_of_what_is_known_costs_redis_nothing() {
    let cached = Cached::new().await;
    cached.keys.add("key", "token").await;
    for (token, outcome) in [("token", Accepted), ("invented", Refused)] {
        cached.use_until_kept(token).await;
        let before = cached.work();
        for _ in 0..10_000 {
            assert_eq!(ask(&cached.directory, token).await, outcome);
        }
        assert_eq!(cached.work(), before, "{token}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_redis_is_emptied_nothing_is_known_any_more() {
    for command in ["FLUSHALL", "FLUSHDB"] {
        let cached = Cached::new().await;
        cached.keys.add("key", "token").await;
        cached.use_until_kept("token").await;
        cached.server.command(&[command]);
        soon_comes_to(&cached.directory, "token", Refused).await;
    }
}

/// An operator may do it without the program.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_is_deleted_or_renamed_or_overwritten_by_hand_is_refused() {
    let cached = Cached::new().await;
    for (number, command) in ["DEL", "UNLINK", "RENAME", "EXPIRE", "HDEL", "MOVE"].into_iter().enumerate() {
        let token = format!("token-{number}");
        cached.keys.add(&format!("key-{number}"), &token).await;
        cached.use_until_kept(&token).await;
        let name = name("shop:", &token);
        let rest: &[&str] = match command {
            "RENAME" => &["elsewhere"],
            "EXPIRE" => &["0"],
            "HDEL" => &["id", "label", "scopes"],
            "MOVE" => &["1"],
            _ => &[],
        };
        cached.server.command(&[&[command, &name], rest].concat());
        soon_comes_to(&cached.directory, &token, Refused).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_was_unknown_is_accepted_once_it_is_added() {
    let cached = Cached::new().await;
    for number in 0..20 {
        let token = format!("token-{number}");
        cached.use_until_kept(&token).await;
        cached.keys.add(&format!("key-{number}"), &token).await;
        soon_comes_to(&cached.directory, &token, Accepted).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invented_tokens_do_not_drive_out_those_of_keys() {
    let cached = Cached::new().await;
    cached.keys.add("key", "token").await;
    cached.use_until_kept("token").await;
    let before = calls(&cached.server, "hmget");
    let tasks: Vec<_> = (0..50)
        .map(|task| {
            let directory = Arc::clone(&cached.directory);
            tokio::spawn(async move {
                for number in 0..1000 {
                    assert_eq!(ask(&directory, &format!("invented-{task}-{number}")).await, Refused);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("the task");
    }
    let asked = calls(&cached.server, "hmget") - before;
    assert_eq!(asked, 50_000);

    let before = cached.work();
    assert_eq!(ask(&cached.directory, "token").await, Accepted);
    assert_eq!(cached.work(), before, "it was driven out");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_tokens_than_fit_all_work_and_no_more_are_kept_than_fit() {
    const MANY: u32 = 100;
    let small = RedisSettings { max_known: 10, max_unknown: 10, ..patient() };
    let cached = Cached::with(small).await;
    for number in 0..MANY {
        cached.keys.add(&format!("key-{number}"), &format!("known-{number}")).await;
    }
    for (kind, outcome) in [("known", Accepted), ("unknown", Refused)] {
        cached.use_until_kept(&format!("{kind}-0")).await;
        for _ in 0..3 {
            let before = calls(&cached.server, "hmget");
            for number in 0..MANY {
                assert_eq!(ask(&cached.directory, &format!("{kind}-{number}")).await, outcome);
            }
            let asked = calls(&cached.server, "hmget") - before;
            assert!(asked >= MANY - 10, "{kind}: only {asked} of {MANY} were not in the cache");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn look_ups_of_one_token_at_a_time_are_one() {
    let linked = Linked::with(patient(), |link| link.delay(Duration::from_millis(50))).await;
    linked.keys.add("key", "token").await;
    for (token, outcome) in [("token", Accepted), ("invented", Refused)] {
        // A report that is on its way would end a look-up's right to be shared.
        comes_to(&linked.directory, "earlier", Refused).await;
        let before = linked.look_ups();
        let look_ups = (0..100).map(|_| ask(&linked.directory, token));
        let outcomes = futures_util::future::join_all(look_ups).await;
        assert_eq!(outcomes, vec![outcome; 100]);
        assert_eq!(linked.look_ups(), before + 1);
    }
}
