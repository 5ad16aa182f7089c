//! Which reads share a statement.

use crate::{
    prelude::*,
    read_fixture::{Get, KINDS, List, ReadFixture, pets},
};

/// The number of rows of each statement since the last call.
async fn row_counts(fixture: &mut ReadFixture) -> Vec<usize> {
    let statements = fixture.statements().await;
    statements.iter().map(|it| it.ids.len()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_that_wait_for_a_response_share_the_next_statement_up_to_500_rows() {
    ReadFixture::in_both_modes(pets(1000), async |mut fixture| {
        for kind in KINDS {
            let of_one_pet = |number| match kind {
                Get(_) => Get(number),
                List(status, ..) => List(status, number - 1, 1),
            };
            let reads: Vec<_> = (2..=602).map(of_one_pet).collect();
            fixture.succeed_together(kind, &reads).await;
            assert_eq!(row_counts(&mut fixture).await, [1, 500, 101], "{kind:?}");
        }
        for status in [None, Some(Pending)] {
            let one = List(status, 0, 1);
            let large = List(status, 0, 800);
            let lists = (0..12).map(|number| List(status, number, 100));
            let lists: Vec<_> = lists.chain([large, one]).collect();
            fixture.succeed_together(one, &lists).await;
            let all = fixture.expected(large).len();
            let counts = row_counts(&mut fixture).await;
            assert_eq!(counts, [1, 500, 500, 200, all, 1], "a large list is alone");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_gets_share_a_row_and_no_read_shares_one_that_was_read_before_it_began() {
    ReadFixture::in_both_modes(pets(10), async |mut fixture| {
        let gets = [2, 3, 2, 4, 1].map(Get);
        fixture.succeed_together(Get(1), &gets).await;
        let statements = fixture.statements().await;
        let ids: Vec<_> = statements.into_iter().map(|it| it.ids).collect();
        assert_eq!(ids, [vec![1], vec![1, 2, 3, 4]]);
    })
    .await;
}

/// Lists with other positions and limits, and of other statuses, are beside it.
#[tokio::test(flavor = "multi_thread")]
async fn each_list_of_a_batch_returns_what_it_returns_alone() {
    ReadFixture::in_both_modes(pets(60), async |mut fixture| {
        for statuses in [&[None][..], &PetStatus::ALL.map(Some)] {
            let pages = [
                (0, 3),
                (7, 40),
                (7, 40),
                (0, 0),
                (58, 9),
                (60, 5),
                (i64::MAX, 1),
                (20, 150),
            ];
            let lists = pages.into_iter().zip(statuses.iter().cycle());
            let lists: Vec<_> = lists
                .map(|((after, limit), status)| List(*status, after, limit))
                .collect();
            let first = List(statuses[0], 0, 1);
            fixture.succeed_together(first, &lists).await;
            assert_eq!(fixture.statements().await.len(), 2);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_of_all_kinds_share_a_batch_with_a_statement_for_each_kind() {
    ReadFixture::in_both_modes(pets(40), async |mut fixture| {
        let pending = |after, limit| List(Some(Pending), after, limit);
        let all = |after, limit| List(None, after, limit);
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
            let before = fixture.read_batches();
            fixture.succeed_together(Get(1), reads).await;
            assert_eq!(fixture.read_batches(), before + 2);
            assert_eq!(fixture.statements().await.len(), 1 + KINDS.len());
        }
    })
    .await;
}
