//! Keys that are added, used and revoked concurrently, each over two directories.
//!
//! If the cache kept a record from before a revocation, the key would stay accepted: the connection works, so the lease
//! never expires. The number of rounds suffices to fail without the check in `PendingLookup::finish`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Instant,
};

use animal_store_adapters_redis::RedisApiKeyDirectory;
use animal_store_app::test_support::join_tasks;
use animal_store_test_servers::RedisSpace;
use futures_util::future::join_all;
use redis::{Pipeline, aio::MultiplexedConnection, pipe};
use tokio::task::yield_now;

use crate::{
    requests::{Accepted, Refused, becomes, pause, use_token},
    setup::{Keys, TEST_TIMEOUT, name, settings},
};

const TASKS: u32 = 8;

struct Race {
    directories: [RedisApiKeyDirectory; 2],
    /// Adds and revokes keys as a store does, but over one connection, and so several times as fast.
    connection: MultiplexedConnection,
    space: RedisSpace,
    over: AtomicBool,
}

impl Race {
    async fn new() -> Arc<Self> {
        let space = RedisSpace::new();
        let keys = Keys::at(space.url(), settings(space.prefix()));
        let directories = [keys.directory().await, keys.directory().await];
        let client = redis::Client::open(space.url()).expect("a client");
        let connection = client.get_multiplexed_async_connection().await.expect("a connection");
        Arc::new(Self { directories, connection, space, over: AtomicBool::new(false) })
    }

    async fn add(&self, token: &str) {
        let fields = [("id", token), ("label", token), ("scopes", "read"), ("last4", ""), ("created", "0")];
        self.transact(pipe().cmd("HSET").arg(name(self.space.prefix(), token)).arg(&fields)).await;
    }

    async fn revoke(&self, token: &str) {
        self.transact(pipe().cmd("DEL").arg(name(self.space.prefix(), token))).await;
    }

    async fn transact(&self, change: &mut Pipeline) {
        change.atomic().exec_async(&mut self.connection.clone()).await.expect("a transaction");
    }

    async fn is_accepted(&self, token: &str) {
        for directory in &self.directories {
            becomes(directory, token, Accepted).await;
        }
    }

    /// Uses a revoked token until both directories refuse it.
    async fn wait_until_refused(&self, token: &str) {
        for directory in &self.directories {
            let start = Instant::now();
            while use_token(directory, token).await != Refused {
                assert!(start.elapsed() < TEST_TIMEOUT, "{token} is accepted after its revocation");
                yield_now().await;
            }
        }
    }

    /// Runs a client that always has a valid key, until the race is over.
    async fn use_valid_key(&self) {
        while !self.over.load(Ordering::Relaxed) {
            for directory in &self.directories {
                assert_ne!(use_token(directory, "valid").await, Refused);
            }
            pause().await;
        }
    }

    /// Runs a client that guesses keys, until the race is over.
    async fn guess_keys(&self) {
        for number in 0.. {
            for directory in &self.directories {
                assert_ne!(use_token(directory, &format!("guess-{number}")).await, Accepted);
            }
            if self.over.load(Ordering::Relaxed) {
                return;
            }
        }
    }
}

/// Runs the rounds, distributed over the tasks, beside other clients. Afterwards, no key of any round is accepted.
async fn run<R>(race: &Arc<Race>, rounds: u32, round: impl Fn(Arc<Race>, String) -> R + Clone + Send + 'static)
where
    R: Future<Output = ()> + Send,
{
    race.add("valid").await;
    race.is_accepted("valid").await;
    let (valid, guessing) = (Arc::clone(race), Arc::clone(race));
    let others = [
        tokio::spawn(async move { valid.use_valid_key().await }),
        tokio::spawn(async move { guessing.guess_keys().await }),
    ];
    join_tasks((0..TASKS).map(|task| {
        let (race, round) = (Arc::clone(race), round.clone());
        async move {
            for number in 0..rounds / TASKS {
                round(Arc::clone(&race), format!("token-{task}-{number}")).await;
            }
        }
    }))
    .await;
    race.over.store(true, Ordering::Relaxed);
    for other in others {
        other.await.expect("the client does not panic");
    }
    for (task, number) in (0..TASKS).flat_map(|task| (0..rounds / TASKS).map(move |number| (task, number))) {
        for directory in &race.directories {
            becomes(directory, &format!("token-{task}-{number}"), Refused).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_key_that_was_used_is_accepted_after_its_revocation() {
    let race = Race::new().await;
    run(&race, 400, |race, token| async move {
        race.add(&token).await;
        race.is_accepted(&token).await;
        // From the cache, or by a lookup that is not cached.
        becomes(&race.directories[0], &token, Accepted).await;
        race.revoke(&token).await;
        race.wait_until_refused(&token).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_key_that_is_first_used_during_its_revocation_is_accepted_after_it() {
    let race = Race::new().await;
    let accepted = Arc::new(AtomicU32::new(0));
    while accepted.load(Ordering::Relaxed) == 0 {
        let accepted = Arc::clone(&accepted);
        race.over.store(false, Ordering::Relaxed);
        run(&race, 400, move |race, token| {
            let accepted = Arc::clone(&accepted);
            async move {
                race.add(&token).await;
                let uses = |directory| join_all([use_token(directory, &token), use_token(directory, &token)]);
                let [first, second] = &race.directories;
                let (first, (), second) = tokio::join!(uses(first), race.revoke(&token), uses(second));
                accepted.fetch_add(u32::from([first, second].concat().contains(&Accepted)), Ordering::Relaxed);
                race.wait_until_refused(&token).await;
            }
        })
        .await;
    }
}
