//! Reads that fail: because of a row alone, otherwise with their batch.

use crate::{
    prelude::*,
    read_fixture::{Get, KINDS, List, Read, ReadFixture, pet, pets},
};

const BAD: i64 = 21;

/// Pets, and a pending one with this name.
fn with_a_pet(name: &str) -> Vec<Pet> {
    let mut pets = pets(40);
    pets[20] = pet(BAD, name, Some(Pending));
    pets
}

/// Reads of a kind. The second and the fifth one read the bad pet.
fn reads(kind: Read) -> [Read; 6] {
    match kind {
        Get(_) => [Get(2), Get(BAD), Get(1), Get(30), Get(BAD), Get(99)],
        List(status, ..) => [
            List(status, 0, 5),
            List(status, 0, 40),
            List(status, BAD, 5),
            List(status, 99, 5),
            List(status, BAD - 1, 1),
            List(status, 0, 0),
        ],
    }
}

/// Reads of the bad pet fail because of its row, and no others.
async fn only_reads_of_the_bad_pet_fail(fixture: &ReadFixture, place: &str) {
    for kind in KINDS {
        let responses = fixture.read_together(kind, &reads(kind)).await;
        for (index, response) in responses.into_iter().enumerate() {
            let read = reads(kind)[index];
            match response {
                Err(StoreFailure::Corrupt(cause)) if [1, 4].contains(&index) => {
                    assert!(cause.to_string().contains(place), "{read:?}: {cause}");
                }
                response => {
                    let pets = response.expect("a response");
                    assert_eq!(pets, fixture.expected(read), "{read:?}");
                }
            }
        }
    }
}

/// Diesel hides the SQLSTATE. PostgreSQL ends a slow statement after three quarters of the timeout for its response, so
/// that the connection is not replaced.
#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_postgresql_refuses_fails_its_batch_and_is_sent_once() {
    ReadFixture::in_both_modes(with_a_pet("bad"), async |fixture| {
        let backends = fixture.observer.backends().await;
        let before = fixture.read_batches();
        for kind in KINDS {
            for response in fixture.read_together(kind, &reads(kind)).await {
                let Err(StoreFailure::Unavailable(cause)) = response else {
                    panic!("{kind:?}: {response:?}")
                };
                let cause = cause.to_string();
                assert!(cause.contains("is bad, the timeout is 22500ms"), "{cause}");
            }
        }
        // Of each kind a lone read, and all others in one batch.
        assert_eq!(fixture.read_batches(), before + 2 * KINDS.len() as u64);
        assert_eq!(fixture.observer.backends().await, backends);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_postgresql_refuses_fails_no_read_of_another_kind() {
    ReadFixture::in_both_modes(with_a_pet("bad"), async |fixture| {
        let by_status = List(Some(Pending), BAD, 5);
        let reads = [Get(BAD), List(None, 0, 5), Get(1), by_status];
        let responses = fixture.read_together(Get(1), &reads).await;
        for (read, response) in reads.into_iter().zip(responses) {
            match read {
                Get(_) => drop(response.expect_err("refused")),
                List(..) => assert_eq!(response.expect("pets"), fixture.expected(read)),
            }
        }
    })
    .await;
}

/// PostgreSQL ends one statement after the other. Both together take longer than the timeout for a response.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_whose_statements_are_ended_one_after_another_is_not_replaced() {
    let settings = PostgresSettings {
        connections_per_worker: 1,
        ..few_seconds()
    };
    in_both_modes(&settings, async |settings| {
        let fixture = ReadFixture::with(settings, pets(4)).await;
        let observer = &fixture.observer;
        let backends = observer.backends().await;
        observer.lock().await;
        for response in join_all(KINDS[..2].iter().map(|&read| fixture.read(read))).await {
            response.expect_err("the table is locked");
        }
        observer.wait_for_table_locks(0).await;
        observer.unlock().await;
        assert_eq!(observer.backends().await, backends);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_row_or_one_that_cannot_be_decoded_fails_only_the_reads_that_contain_it() {
    ReadFixture::in_both_modes(with_a_pet("valid"), async |mut fixture| {
        let backends = fixture.observer.backends().await;
        let set = format!("UPDATE pets SET name = ' ' WHERE id = {BAD}");
        fixture.observer.run(&set).await;
        let place = format!("table pets, column name, id {BAD}");
        only_reads_of_the_bad_pet_fail(&fixture, &place).await;
        // Of each kind a lone read, and all others in one statement.
        assert_eq!(fixture.statements().await.len(), 2 * KINDS.len());
        let null = "ALTER TABLE pets ALTER COLUMN name DROP NOT NULL; UPDATE pets SET name = NULL";
        fixture
            .observer
            .run(&format!("{null} WHERE id = {BAD}"))
            .await;
        only_reads_of_the_bad_pet_fail(&fixture, "").await;
        assert_eq!(fixture.observer.backends().await, backends);
    })
    .await;
}
