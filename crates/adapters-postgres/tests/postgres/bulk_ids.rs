//! Pets that keep their ids, beside creates: no create fails, no id is used twice, and later creates get greater ids.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use animal_store_app::ports::{AddedBulkPet, BulkStorage};
use futures_util::FutureExt;

use crate::{
    bulk_fixture::{batch, bulk, id, with_id, without_id},
    fixture::Fixture,
    outcomes::add,
    sql_session::SqlSession,
    store::{in_both_modes, settings},
};

async fn next_id(fixture: &Fixture) -> i64 {
    add(&fixture.store.repository, "next").await.expect("added").id().get()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn later_creates_get_greater_ids_and_the_sequence_never_moves_backwards() {
    let fixture = Fixture::new().await;
    let bulk = bulk(fixture.database.url());
    for (given, expected) in [(2, 3), (10, 11), (5, 12), (12, 13), (1_000_000, 1_000_001)] {
        bulk.add_pets(batch(vec![with_id(given, "given")])).await.expect("added");
        assert_eq!(next_id(&fixture).await, expected);
    }
    assert_eq!(
        bulk.add_pets(batch(vec![without_id("a"), without_id("b")])).await.expect("added"),
        [1_000_002, 1_000_003].map(|number| AddedBulkPet::Added(id(number)))
    );

    // The sequence of an empty table was never used.
    fixture.observer.run("TRUNCATE pets RESTART IDENTITY").await;
    bulk.add_pets(batch(vec![with_id(1, "given")])).await.expect("added");
    assert_eq!(next_id(&fixture).await, 2);
}

/// The create has taken its id from the sequence, and its row is not inserted yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_with_ids_waits_for_the_creates_in_flight() {
    in_both_modes(&settings(), async |settings| {
        let fixture = Fixture::with(settings).await;
        let bulk = Arc::new(bulk(fixture.database.url()));
        fixture.trigger("IF NEW.name = 'slow' THEN PERFORM pg_advisory_xact_lock(1); END IF").await;
        fixture.observer.run("SELECT pg_advisory_lock(1)").await;
        let create = fixture.begin("slow");
        fixture.observer.wait_for_locks("advisory", 1).await;
        let import = tokio::spawn(async move { bulk.add_pets(batch(vec![with_id(2, "given")])).await });
        fixture.observer.wait_for_locks("relation", 1).await;
        fixture.observer.run("SELECT pg_advisory_unlock(1)").await;
        assert_eq!(create.await.expect("added").id().get(), 2);
        assert_eq!(import.await.expect("no panic").expect("a batch"), [AddedBulkPet::IdTaken]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn creates_that_begin_during_a_reservation_get_greater_ids() {
    let fixture = Fixture::new().await;
    let bulk = Arc::new(bulk(fixture.database.url()));
    // The reservation waits for this transaction, and the create for the reservation.
    let locking = SqlSession::of(&fixture.database).await;
    locking.run("BEGIN; LOCK TABLE pets IN ROW EXCLUSIVE MODE").await;
    let import = tokio::spawn(async move { bulk.add_pets(batch(vec![with_id(50, "given")])).await });
    fixture.observer.wait_for_locks("relation", 1).await;
    let mut create = fixture.begin("Rex");
    fixture.observer.wait_for_locks("relation", 2).await;
    assert!((&mut create).now_or_never().is_none());
    locking.unlock().await;
    assert_eq!(create.await.expect("added").id().get(), 51);
    assert_eq!(import.await.expect("no panic").expect("a batch"), [AddedBulkPet::Added(id(50))]);
}

/// Each batch takes ids that creates are about to take.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn creates_during_imports_never_fail_and_no_id_is_used_twice() {
    in_both_modes(&settings(), async |settings| {
        let fixture = Fixture::with(settings).await;
        let done = Arc::new(AtomicBool::new(false));
        let creates: Vec<_> = (0..8)
            .map(|_| {
                let (repository, done) = (Arc::clone(&fixture.store.repository), Arc::clone(&done));
                tokio::spawn(async move {
                    let mut ids = Vec::new();
                    while !done.load(Ordering::Relaxed) {
                        ids.push(add(&repository, "created").await.expect("added").id().get());
                    }
                    ids
                })
            })
            .collect();
        let imports: Vec<_> = (0..2)
            .map(|_| {
                let bulk = bulk(fixture.database.url());
                let url = fixture.database.url().to_owned();
                tokio::spawn(async move {
                    let session = SqlSession::at(&url).await;
                    let mut imported = Vec::new();
                    for round in 0..40 {
                        let last = session.column("SELECT last_value FROM pets_id_seq").await;
                        let last: i64 = last[0].parse().expect("a number");
                        let given = (last - 5..last + 15).filter(|&number| number > 0);
                        let mut pets: Vec<_> = given.map(|number| with_id(number, &format!("given {round}"))).collect();
                        pets.push(without_id("without"));
                        for added in bulk.add_pets(batch(pets)).await.expect("a batch") {
                            if let AddedBulkPet::Added(id) = added {
                                imported.push(id.get());
                            }
                        }
                    }
                    imported
                })
            })
            .collect();
        let mut ids = vec![1];
        for import in imports {
            let imported = import.await.expect("no panic");
            assert!(imported.len() > 40, "some ids were free");
            ids.extend(imported);
        }
        done.store(true, Ordering::Relaxed);
        for create in creates {
            let assigned = create.await.expect("no panic");
            assert!(!assigned.is_empty() && assigned.is_sorted());
            ids.extend(assigned);
        }
        ids.sort_unstable();
        let stored = fixture.observer.column("SELECT id FROM pets ORDER BY id").await;
        assert!(ids.iter().map(i64::to_string).eq(stored), "each pet is stored once");
        assert!(next_id(&fixture).await > ids[ids.len() - 1]);
    })
    .await;
}
