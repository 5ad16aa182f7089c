//! Keys that are made, used and revoked by many at the same time, each over two directories.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use animal_store_adapters_redis::RedisApiKeyDirectory;
use animal_store_test_servers::RedisSpace;
use redis::{Pipeline, aio::MultiplexedConnection, pipe};
use tokio::task::{JoinHandle, yield_now};

use crate::{
    keys::{Keys, REPORTED, name, report, settings},
    uses::{Accepted, Awake, Failed, Refused, a_moment, ask, comes_to},
};

const TASKS: u32 = 8;

struct Race {
    keys: Keys,
    directories: [RedisApiKeyDirectory; 2],
    /// Makes and revokes keys as a store does, but over one connection, and so several times as fast.
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
        Arc::new(Self { keys, directories, connection, space, over: AtomicBool::new(false) })
    }

    async fn make(&self, token: &str) {
        let fields = [("id", token), ("label", token), ("scopes", "read"), ("last4", ""), ("created", "0")];
        self.transact(pipe().cmd("HSET").arg(name(self.space.prefix(), token)).arg(&fields)).await;
    }

    async fn revoke(&self, token: &str) -> Instant {
        self.transact(pipe().cmd("DEL").arg(name(self.space.prefix(), token))).await;
        Instant::now()
    }

    async fn transact(&self, change: &mut Pipeline) {
        change.atomic().exec_async(&mut self.connection.clone()).await.expect("a transaction");
    }

    /// Uses a revoked token until it is refused everywhere. Returns how long it passed.
    async fn ends(&self, token: &str, revoked: Instant) -> Duration {
        let mut longest = Duration::ZERO;
        for directory in &self.directories {
            let mut awake = Awake::since(revoked);
            loop {
                let asked = awake.elapsed();
                match ask(directory, token).await {
                    Refused => break,
                    Accepted => longest = longest.max(asked),
                    Failed => {}
                }
                assert!(longest < REPORTED, "{token} passes {longest:?} after its revocation");
                yield_now().await;
            }
        }
        longest
    }

    /// Other clients, until the race is over: one with a good key, and one that guesses.
    fn bystanders(self: &Arc<Self>) -> Vec<JoinHandle<()>> {
        let good = Arc::clone(self);
        let guessing = Arc::clone(self);
        vec![
            tokio::spawn(async move {
                while !good.over.load(Ordering::Relaxed) {
                    for directory in &good.directories {
                        assert_ne!(ask(directory, "good").await, Refused);
                    }
                    a_moment().await;
                }
            }),
            tokio::spawn(async move {
                for number in 0.. {
                    for directory in &guessing.directories {
                        assert_ne!(ask(directory, &format!("guess-{number}")).await, Accepted);
                    }
                    if guessing.over.load(Ordering::Relaxed) {
                        break;
                    }
                }
            }),
        ]
    }
}

/// Runs each round of each task, with bystanders, and prints how long revoked keys passed.
async fn run<R>(race: &Arc<Race>, rounds: u32, round: impl Fn(Arc<Race>, String) -> R + Clone + Send + 'static)
where
    R: Future<Output = Duration> + Send,
{
    race.make("good").await;
    for directory in &race.directories {
        comes_to(directory, "good", Accepted).await;
    }
    let bystanders = race.bystanders();
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (race, round) = (Arc::clone(race), round.clone());
            tokio::spawn(async move {
                let mut windows = Vec::new();
                for number in 0..rounds {
                    windows.push(round(Arc::clone(&race), format!("token-{task}-{number}")).await);
                }
                windows
            })
        })
        .collect();
    let mut windows = Vec::new();
    for task in tasks {
        windows.extend(task.await.expect("the task"));
    }
    race.over.store(true, Ordering::Relaxed);
    for bystander in bystanders {
        bystander.await.expect("the bystander");
    }
    report("passed after its revocation", &mut windows);
    for (task, number) in (0..TASKS).flat_map(|task| (0..rounds).map(move |number| (task, number))) {
        for directory in &race.directories {
            comes_to(directory, &format!("token-{task}-{number}"), Refused).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_key_passes_100_ms_after_its_revocation_in_4000_rounds() {
    let race = Race::new().await;
    run(&race, 4000 / TASKS, |race, token| async move {
        race.make(&token).await;
        for directory in &race.directories {
            comes_to(directory, &token, Accepted).await;
        }
        // From the cache, or with a look-up that is not kept.
        comes_to(&race.directories[0], &token, Accepted).await;
        let revoked = race.revoke(&token).await;
        race.ends(&token, revoked).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_whose_first_uses_meet_its_revocation_does_not_pass_after_it() {
    let race = Race::new().await;
    let met = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&met);
    run(&race, 1000 / TASKS, move |race, token| {
        let met = Arc::clone(&met);
        async move {
            race.make(&token).await;
            let uses = |directory| futures_util::future::join_all([ask(directory, &token), ask(directory, &token)]);
            let [first, second] = &race.directories;
            let (first, revoked, second) = tokio::join!(uses(first), race.revoke(&token), uses(second));
            let accepted = [first, second].concat().into_iter().filter(|&outcome| outcome == Accepted).count();
            met.fetch_add(u32::from(accepted > 0), Ordering::Relaxed);
            race.ends(&token, revoked).await
        }
    })
    .await;
    assert_ne!(seen.load(Ordering::Relaxed), 0, "no use was early enough to be accepted");
}

/// As it is in earnest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_key_passes_100_ms_after_the_store_revoked_it_or_rotated_its_token_away() {
    let race = Race::new().await;
    run(&race, 80 / TASKS, |race, token| async move {
        use animal_store_app::ports::ApiKeyStore;

        let key = race.keys.add(&token, &token).await;
        for directory in &race.directories {
            comes_to(directory, &token, Accepted).await;
        }
        let new = format!("new-{token}");
        let new_token = crate::keys::new_token(&new);
        race.keys.store.rotate(&key.id, new_token, Duration::ZERO).await.expect("rotate").expect("the key");
        let rotated = race.ends(&token, Instant::now()).await;
        for directory in &race.directories {
            comes_to(directory, &new, Accepted).await;
        }
        race.keys.revoke(&key).await;
        rotated.max(race.ends(&new, Instant::now()).await)
    })
    .await;
}
