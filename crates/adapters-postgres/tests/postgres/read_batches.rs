//! Which reads share a statement.

use animal_store_domain::PetStatus;

use crate::{
    explain::one_connection,
    metrics::metrics,
    read_fixture::{Get, KINDS, List, Read, ReadFixture, Response, ids, pets},
    store::in_both_modes,
};

/// The ids in the response.
fn response_ids(response: &Response) -> Vec<i64> {
    ids(response.as_ref().expect("a response"))
}

/// Numbered reads of the same kind as this one. Each of them reads one pet.
fn numbered(kind: Read, numbers: impl Iterator<Item = i64>) -> Vec<Read> {
    let read = |number| match kind {
        Get(_) => Get(number),
        List(status, ..) => List(status, number - 1, 1),
    };
    numbers.map(read).collect()
}

/// The ids of the rows of each statement since the last call.
async fn statement_ids(fixture: &mut ReadFixture) -> Vec<Vec<i64>> {
    fixture
        .statements()
        .await
        .into_iter()
        .map(|statement| statement.ids)
        .collect()
}

async fn row_counts(fixture: &mut ReadFixture) -> Vec<usize> {
    statement_ids(fixture).await.iter().map(Vec::len).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_that_wait_for_a_response_share_the_next_statement_up_to_500_rows() {
    in_both_modes(&one_connection(), async |settings| {
        let mut fixture = ReadFixture::with(settings, pets(1000)).await;
        for kind in KINDS {
            let reads = numbered(kind, 2..=602);
            let responses = fixture.read_together(kind, &reads).await;
            for (read, response) in reads.iter().zip(responses) {
                assert_eq!(
                    response.expect("a response"),
                    fixture.expected(*read),
                    "{read:?}"
                );
            }
            assert_eq!(row_counts(&mut fixture).await, [1, 500, 101], "{kind:?}");
        }
        for status in [None, Some(PetStatus::Pending)] {
            let lists: Vec<_> = (0..12).map(|number| List(status, number, 100)).collect();
            let lists_and_a_large_one =
                [&lists[..], &[List(status, 0, 800), List(status, 0, 1)]].concat();
            let responses = fixture
                .read_together(List(status, 0, 1), &lists_and_a_large_one)
                .await;
            let all = fixture.expected(List(status, 0, 800)).len();
            assert_eq!(response_ids(&responses[12]).len(), all);
            assert_eq!(
                row_counts(&mut fixture).await,
                [1, 500, 500, 200, all, 1],
                "a large list is alone"
            );
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equal_gets_share_a_row_and_no_read_shares_one_that_was_read_before_it_began() {
    in_both_modes(&one_connection(), async |settings| {
        let mut fixture = ReadFixture::with(settings, pets(10)).await;
        let responses = fixture
            .read_together(Get(1), &[Get(2), Get(3), Get(2), Get(4), Get(1)])
            .await;
        assert_eq!(
            responses.iter().map(response_ids).collect::<Vec<_>>(),
            [[2], [3], [2], [4], [1]]
        );
        assert_eq!(
            statement_ids(&mut fixture).await,
            [vec![1], vec![1, 2, 3, 4]]
        );
    })
    .await;
}

/// Lists with other positions and limits, and of other statuses, are beside it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_list_of_a_batch_returns_what_it_returns_alone() {
    in_both_modes(&one_connection(), async |settings| {
        let mut fixture = ReadFixture::with(settings, pets(60)).await;
        for statuses in [&[None][..], &PetStatus::ALL.map(Some)] {
            let lists: Vec<_> = [
                (0, 3),
                (7, 40),
                (7, 40),
                (0, 0),
                (58, 9),
                (60, 5),
                (i64::MAX, 1),
                (20, 150),
            ]
            .into_iter()
            .zip(statuses.iter().cycle())
            .map(|((after, limit), status)| List(*status, after, limit))
            .collect();
            let responses = fixture.read_together(List(statuses[0], 0, 1), &lists).await;
            for (list, response) in lists.iter().zip(responses) {
                assert_eq!(
                    response.expect("a response"),
                    fixture.expected(*list),
                    "{list:?}"
                );
            }
            assert_eq!(fixture.statements().await.len(), 2);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_of_all_kinds_share_a_batch_with_a_statement_for_each_kind() {
    in_both_modes(&one_connection(), async |settings| {
        let mut fixture = ReadFixture::with(settings, pets(40)).await;
        let pending = |after, limit| List(Some(PetStatus::Pending), after, limit);
        let all = |after, limit| List(None, after, limit);
        let registry = &fixture.store.registry;
        let batches = || metrics(registry, "read", ["batch_duration_seconds_count"])[0];
        for reads in [
            &[pending(3, 2), Get(7), all(5, 3)][..],
            &[
                all(0, 2),
                pending(0, 9),
                Get(3),
                all(9, 4),
                Get(4),
                pending(20, 1),
            ],
        ] {
            let before = batches();
            let responses = fixture.read_together(Get(1), reads).await;
            assert_eq!(batches(), before + 2);
            for (read, response) in reads.iter().zip(responses) {
                let pets = response.expect("a response");
                assert_eq!(pets, fixture.expected(*read), "{read:?}");
            }
        }
        assert_eq!(fixture.statements().await.len(), 2 * (1 + KINDS.len()));
    })
    .await;
}
