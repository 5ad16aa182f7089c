//! Batches of adds: they share a commit, an invalid row fails alone, and any other failure is that of the whole batch.

use crate::{outcomes::AddResult, prelude::*};

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_wait_for_a_commit_share_the_next_one_up_to_a_thousand_pets() {
    let settings = PostgresSettings {
        max_waiting_creates: 3000,
        ..settings()
    };
    Fixture::in_both_modes_of(&settings, async |fixture| {
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
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_writer_ends_after_the_last_repository_is_dropped_and_every_request_has_its_response() {
    Fixture::in_both_modes(async |fixture| {
        let first = fixture.observer.block(|| fixture.add("first")).await;
        let left = fixture.add("left");
        let waiting = NAMES.map(|name| fixture.add(name));
        let Fixture {
            store,
            observer,
            database: _database,
            proxy: _proxy,
        } = fixture;
        let mut writer = store.writer;
        drop((store.repository, store.storage));
        // A pending add holds a repository. A statement that was sent is completed without its client.
        drop((first, left));
        assert!((&mut writer).now_or_never().is_none());
        observer.unlock().await;
        let added = join_all(waiting).await;
        assert_eq!(outcomes(&added), [Success; NAMES.len()]);
        let ended = timeout(TEST_TIMEOUT, writer).await;
        ended.expect("the writer ends").expect("no panic");
        assert_eq!(observer.named("first").await, 1);
        assert_eq!(observer.named("left").await, 0);
        observer.wait_for_backends(0).await;
    })
    .await;
}

fn outcomes(added: &[AddResult]) -> Vec<Outcome> {
    added.iter().map(add_outcome).collect()
}

/// Only the bad row is refused, with its reason. No connection is replaced. Leaves no pet.
async fn fails_alone(fixture: &Fixture, text: &str) {
    let observer = &fixture.observer;
    let backends = observer.backends().await;
    let added = fixture.add_together(&NAMES).await;
    assert_eq!(observer.backends().await, backends);
    for (name, added) in NAMES.iter().zip(&added) {
        match added {
            Ok(pet) => {
                let stored = format!("pets WHERE name = '{name}' AND id = {}", pet.id().get());
                assert_eq!(observer.count(&stored).await, 1);
            }
            Err(error) => assert!(*name == "bad" && reason(error).contains(text), "{error:?}"),
        }
    }
    assert_eq!(add_outcome(&added[2]), Unavailable);
    assert_eq!(fixture.names().await, ["a", "b", "c", "d", "e", "f"]);
    observer.run("DELETE FROM pets").await;
}

/// Nothing of the batch is stored; the next batch is. Only a connection that did not report the outcome of a commit is
/// replaced.
async fn fails_together(fixture: &Fixture, outcome: Outcome) {
    let observer = &fixture.observer;
    let backends = observer.backends().await;
    let added = fixture.add_together(&NAMES).await;
    assert_eq!(outcomes(&added), [outcome; NAMES.len()]);
    assert_eq!(fixture.names().await, [""; 0]);
    let is_added = async || add_outcome(&fixture.add("Rex").await) == Success;
    wait_until("adds succeed", is_added).await;
    let are_kept = observer.backends().await == backends;
    assert_eq!(are_kept, outcome != Unknown);
    let later = fixture.add_together(&["later", "still later"]).await;
    assert_eq!(outcomes(&later), [Success; 2]);
    observer.run("DELETE FROM pets").await;
}

/// Exception of PL/pgSQL, of another language, insufficient privilege, a feature, a constraint, a code of the
/// operator's. PostgreSQL ends a slow statement before the timeout for its response, so that no connection is replaced.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_a_constraint_or_a_trigger_refuses_or_suppresses_fails_alone_whatever_the_code()
{
    Fixture::in_both_modes(async |fixture| {
        for code in [
            "P0001", "38000", "42501", "0A000", "23514", "45000", "PT403",
        ] {
            let message = "MESSAGE = 'timeout ' || current_setting('statement_timeout')";
            let refuse = raise(code, "").replace("'' USING", &format!("USING {message},"));
            let text = format!("timeout 22500ms (SQLSTATE {code})");
            fixture.trigger(&refuse).await;
            fails_alone(&fixture, &text).await;
            fixture.trigger_at_commit(&refuse).await;
            fails_alone(&fixture, &text).await;
        }
        let suppress = "IF NEW.name = 'bad' THEN RETURN NULL; END IF";
        fixture.trigger(suppress).await;
        fails_alone(&fixture, "suppressed").await;
        let constraint = "CONSTRAINT no_bad_ones CHECK (name <> 'bad')";
        let change = format!("DROP TRIGGER spoil ON pets; ALTER TABLE pets ADD {constraint}");
        fixture.observer.run(&change).await;
        let place = "SQLSTATE 23514, table pets, constraint no_bad_ones";
        fails_alone(&fixture, place).await;
    })
    .await;
}

/// The good ones share few commits: at most one per bad row and half of the batch that it is in.
#[tokio::test(flavor = "multi_thread")]
async fn one_client_whose_pets_a_trigger_refuses_costs_the_others_few_commits() {
    let fixture = Fixture::new().await;
    fixture.trigger(&raise("P0001", "refused")).await;
    let name = |number| if number % 200 == 7 { "bad" } else { "good" };
    let names: Vec<_> = (0..1000).map(name).collect();
    let [requests, _] = fixture.requests_and_batches("create");
    let added = fixture.add_together(&names).await;
    for (name, added) in names.iter().zip(&added) {
        assert_eq!(added.is_ok(), *name == "good");
    }
    let commits = "(SELECT DISTINCT xmin::text FROM pets WHERE name = 'good') AS commits";
    let commits = fixture.observer.count(commits).await;
    assert!((2..=50).contains(&commits), "{commits}");
    // With the pet before them, each is counted once, however often its batch was split.
    let [counted, _] = fixture.requests_and_batches("create");
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
        assert_eq!(add_outcome(&fixture.add("bad").await), Unavailable);
        assert_eq!(add_outcome(&fixture.add("Rex").await), Success);
        assert!(start.elapsed() >= Duration::from_secs(1));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_conflict_with_another_transaction_a_batch_is_retried_once() {
    Fixture::in_both_modes(async |fixture| {
        for code in ["40001", "40P01"] {
            // A sequence also counts attempts that are rolled back.
            let sequence = "DROP SEQUENCE IF EXISTS attempts; CREATE SEQUENCE attempts";
            fixture.observer.run(sequence).await;
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

/// It was stored under an id that is not known.
#[tokio::test(flavor = "multi_thread")]
async fn if_a_trigger_changes_an_id_the_outcome_is_unknown() {
    let fixture = Fixture::new().await;
    let change = "IF NEW.name = 'bad' THEN NEW.id := 1000000; END IF";
    fixture.trigger(change).await;
    let added = fixture.add_together(&NAMES).await;
    assert_eq!(add_outcome(&added[2]), Unknown);
    assert_eq!(fixture.observer.named("bad").await, 1);
}
