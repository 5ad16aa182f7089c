//! Batches of adds: they share a commit, an invalid row fails alone, and any other failure is that of the whole batch.

use std::time::{Duration, Instant};

use animal_store_adapters_postgres::PostgresSettings;

use futures_util::{FutureExt, future::join_all};
use tokio::time::timeout;

use crate::{
    fixture::{AddResult, Fixture, NAMES, raise},
    metrics::requests_and_batches,
    outcomes::{
        Outcome, Success, TEST_TIMEOUT, Timeout, Unavailable, Unknown, add, add_outcome, reason,
        wait_until,
    },
    store::{in_both_modes, settings},
};

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_wait_for_a_commit_share_the_next_one_up_to_a_thousand_pets() {
    in_both_modes(
        &PostgresSettings {
            max_waiting_creates: 3000,
            ..settings()
        },
        async |settings| {
            let fixture = Fixture::with(settings).await;
            let names: Vec<_> = (0..2500).map(|number| number.to_string()).collect();
            let added = fixture.add_together(&names).await;
            let added = added.into_iter().map(|added| added.expect("added").id());
            let added: Vec<_> = added.map(|id| id.get().to_string()).collect();
            let pets = "FROM pets WHERE name NOT IN ('Rex', 'first')";
            let stored = format!("SELECT id {pets} ORDER BY name::int");
            let stored = fixture.observer.column(&stored).await;
            assert_eq!(stored, added, "each has its own id");
            assert_eq!(fixture.names().await, names, "in the order of the requests");
            let commits = format!("SELECT count(*) {pets} GROUP BY xmin::text ORDER BY min(id)");
            let commits = fixture.observer.column(&commits).await;
            assert_eq!(commits, ["1000", "1000", "500"]);
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_writer_ends_after_the_last_repository_is_dropped_and_every_request_has_its_response() {
    Fixture::in_both_modes(async |fixture| {
        let first = fixture.block().await;
        let left = fixture.begin("left");
        let waiting = NAMES.map(|name| fixture.begin(name));
        let mut writer = fixture.store.writer;
        drop((fixture.store.repository, fixture.store.storage));
        // A pending add holds a repository. A statement that was sent is completed without its client.
        drop((first, left));
        assert!((&mut writer).now_or_never().is_none());
        fixture.observer.unlock().await;
        let added = join_all(waiting).await;
        assert_eq!(outcomes(&added), [Success; NAMES.len()]);
        let ended = timeout(TEST_TIMEOUT, writer).await;
        ended.expect("the writer ends").expect("no panic");
        assert_eq!(fixture.observer.named("first").await, 1);
        assert_eq!(fixture.observer.named("left").await, 0);
        fixture.observer.wait_for_backends(0).await;
    })
    .await;
}

fn outcomes(added: &[AddResult]) -> Vec<Outcome> {
    added.iter().map(add_outcome).collect()
}

fn all_but(bad: &[&str], outcome: Outcome) -> Vec<Outcome> {
    NAMES
        .iter()
        .map(|name| if bad.contains(name) { outcome } else { Success })
        .collect()
}

/// Only the bad row is refused, with its reason. No connection is replaced.
async fn fails_alone(fixture: &Fixture, text: &str) {
    let backends = fixture.observer.backends().await;
    let added = fixture.add_together(&NAMES).await;
    assert_eq!(fixture.observer.backends().await, backends);
    assert_eq!(outcomes(&added), all_but(&["bad"], Unavailable));
    let reason = reason(added[2].as_ref().expect_err("refused"));
    assert!(reason.contains(text), "{reason}");
    assert_eq!(fixture.names().await, ["a", "b", "c", "d", "e", "f"]);
    for (name, added) in NAMES.iter().zip(added) {
        if let Ok(pet) = added {
            let stored = format!("pets WHERE name = '{name}' AND id = {}", pet.id().get());
            assert_eq!(fixture.observer.count(&stored).await, 1);
        }
    }
}

/// Nothing of the batch is stored; the next batch is. Only a connection that did not report the outcome of a commit is
/// replaced.
async fn fails_together(fixture: &Fixture, outcome: Outcome) {
    let backends = fixture.observer.backends().await;
    let added = fixture.add_together(&NAMES).await;
    assert_eq!(outcomes(&added), [outcome; NAMES.len()]);
    assert_eq!(fixture.names().await, [""; 0]);
    let is_added = async || add_outcome(&add(&fixture.store.repository, "Rex").await) == Success;
    wait_until("adds succeed", is_added).await;
    assert_eq!(
        fixture.observer.backends().await == backends,
        outcome != Unknown
    );
    assert_eq!(
        outcomes(&fixture.add_together(&["later", "still later"]).await),
        [Success; 2]
    );
    fixture
        .observer
        .run("DELETE FROM pets WHERE name LIKE '%later'")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_violates_a_constraint_or_is_refused_at_commit_fails_alone() {
    Fixture::in_both_modes(async |fixture| {
        fixture
            .observer
            .run("ALTER TABLE pets ADD CONSTRAINT no_bad_ones CHECK (name <> 'bad')")
            .await;
        fails_alone(
            &fixture,
            "SQLSTATE 23514, table pets, constraint no_bad_ones",
        )
        .await;
        fixture
            .observer
            .run("DELETE FROM pets; ALTER TABLE pets DROP CONSTRAINT no_bad_ones")
            .await;
        // PostgreSQL ends a slow statement before the timeout for its response, so that no connection is replaced.
        let timeout = "MESSAGE = 'timeout ' || current_setting('statement_timeout')";
        let raise = raise("23514", "").replace("'' USING", &format!("USING {timeout},"));
        fixture.trigger_at_commit(&raise).await;
        fails_alone(&fixture, "timeout 22500ms (SQLSTATE 23514)").await;
    })
    .await;
}

/// Exception of PL/pgSQL, of another language, insufficient privilege, a feature, a code of the operator's.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_a_trigger_refuses_fails_alone_whatever_the_code() {
    Fixture::in_both_modes(async |fixture| {
        for code in ["P0001", "38000", "42501", "0A000", "45000", "PT403"] {
            fixture.trigger(&raise(code, "refused")).await;
            fails_alone(&fixture, &format!("refused (SQLSTATE {code})")).await;
            fixture.observer.run("DELETE FROM pets").await;
            fixture.trigger_at_commit(&raise(code, "refused")).await;
            fails_alone(&fixture, &format!("refused (SQLSTATE {code})")).await;
            fixture.observer.run("DELETE FROM pets").await;
        }
    })
    .await;
}

/// The good ones share few commits: at most one per bad row and half of the batch that it is in.
#[tokio::test(flavor = "multi_thread")]
async fn one_client_whose_pets_a_trigger_refuses_costs_the_others_few_commits() {
    let fixture = Fixture::new().await;
    fixture.trigger(&raise("P0001", "refused")).await;
    let names: Vec<_> = (0..1000)
        .map(|number| if number % 200 == 7 { "bad" } else { "good" })
        .collect();
    let [requests, _] = requests_and_batches(&fixture.store.registry, "create");
    let added = fixture.add_together(&names).await;
    for (name, outcome) in names.iter().zip(outcomes(&added)) {
        assert_eq!(outcome == Success, *name == "good");
    }
    let commits = "(SELECT DISTINCT xmin::text FROM pets WHERE name = 'good') AS commits";
    let commits = fixture.observer.count(commits).await;
    assert!((2..=50).contains(&commits), "{commits}");
    // With the pet before them, each is counted once, however often its batch was split.
    let [counted, _] = requests_and_batches(&fixture.store.registry, "create");
    assert_eq!(counted, requests + 1001);
}

#[tokio::test(flavor = "multi_thread")]
async fn any_other_failure_is_that_of_the_whole_batch() {
    // Disk full, cancelled statement, completion unknown.
    for (code, outcome) in [
        ("53100", Unavailable),
        ("57014", Timeout),
        ("40003", Unknown),
    ] {
        let fixture = Fixture::new().await;
        fixture.trigger(&raise(code, "all")).await;
        fails_together(&fixture, outcome).await;
        fixture.trigger_at_commit(&raise(code, "all")).await;
        fails_together(&fixture, outcome).await;
    }
}

/// Keys can be revoked meanwhile, and the next create is stored if there is space.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_full_disk_creates_pause_for_a_second() {
    Fixture::in_both_modes(async |fixture| {
        fixture.trigger(&raise("53100", "full")).await;
        let start = Instant::now();
        let repository = &fixture.store.repository;
        assert_eq!(add_outcome(&add(repository, "bad").await), Unavailable);
        assert_eq!(add_outcome(&add(repository, "Rex").await), Success);
        assert!(start.elapsed() >= Duration::from_secs(1));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_conflict_with_another_transaction_a_batch_is_retried_once() {
    Fixture::in_both_modes(async |fixture| {
        for code in ["40001", "40P01"] {
            // A sequence also counts attempts that are rolled back.
            fixture
                .observer
                .run("DROP SEQUENCE IF EXISTS attempts; CREATE SEQUENCE attempts")
                .await;
            let attempt = " AND nextval('attempts') IN (1, 3, 4) THEN";
            let refuse = raise(code, "in the way").replace(" THEN", attempt);
            fixture.trigger(&refuse).await;
            let attempts = "SELECT last_value FROM attempts";
            let added = fixture.add_together(&NAMES).await;
            assert_eq!(outcomes(&added), [Success; NAMES.len()]);
            assert_eq!(fixture.names().await, NAMES);
            assert_eq!(fixture.observer.column(attempts).await, ["2"]);

            fixture.observer.run("DELETE FROM pets").await;
            fails_together(&fixture, Unavailable).await;
            assert_eq!(fixture.observer.column(attempts).await, ["4"]);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_a_trigger_suppresses_fails_alone() {
    let fixture = Fixture::new().await;
    fixture
        .trigger("IF NEW.name IN ('bad', 'f') THEN RETURN NULL; END IF")
        .await;
    assert_eq!(
        outcomes(&fixture.add_together(&NAMES).await),
        all_but(&["bad", "f"], Unavailable)
    );
    assert_eq!(fixture.names().await, ["a", "b", "c", "d", "e"]);
}

/// It was stored under an id that is not known.
#[tokio::test(flavor = "multi_thread")]
async fn if_a_trigger_changes_an_id_the_outcome_is_unknown() {
    let fixture = Fixture::new().await;
    fixture
        .trigger("IF NEW.name = 'bad' THEN NEW.id := 1000000; END IF")
        .await;
    let added = fixture.add_together(&NAMES).await;
    assert_eq!(add_outcome(&added[2]), Unknown);
    assert_eq!(fixture.observer.named("bad").await, 1);
}
