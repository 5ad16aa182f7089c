//! Whatever became of an add with a key, asking again is right: there is one animal in the end, and everybody who is
//! answered is told the same.

use std::time::Instant;

use animal_store_adapters_postgres::PostgresSettings;

use crate::{
    calls::{Answered, PATIENCE, Unavailable, Unknown, a_moment, comes_to},
    keyed::{Again, Failed, Keyed, New, ask, comes_to_be_added},
    session::Session,
    store::{Linked, MARGIN, Served, Store, TIMEOUT, both_ways, impatient, settings},
};

/// Asks, and meanwhile cuts the link as soon as that holds something up.
async fn ask_and_cut(linked: &Linked, name: &str) -> Keyed {
    let meanwhile = async {
        let start = Instant::now();
        while linked.link.held() == 0 {
            assert!(start.elapsed() < PATIENCE, "nothing is held up");
            a_moment().await;
        }
        linked.link.cut();
    };
    tokio::join!(ask(&linked.store.repository, name), meanwhile).0
}

/// One that has a connection for keys.
async fn linked(settings: PostgresSettings) -> Linked {
    let linked = Linked::new(settings).await;
    comes_to_be_added(&linked.store.repository, "Rex").await;
    linked
}

/// Where all of these were told about it.
async fn is_stored_once(linked: &Linked, name: &str, answers: &[Keyed]) {
    let stored = linked.other.column(&format!("SELECT id FROM pets WHERE name = '{name}'")).await;
    let told: Vec<_> = answers.iter().map(|answer| answer.id().to_string()).collect();
    assert!(stored.len() == 1 && told.iter().all(|id| *id == stored[0]), "{stored:?}, but told {told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_was_cut_off_on_its_way_there_is_new_when_it_is_sent_again() {
    for settings in both_ways(&settings()) {
        let mut linked = linked(settings).await;
        let backends = linked.other.backends().await;
        linked.link.hold("lost");
        assert_eq!(ask_and_cut(&linked, "lost").await, Failed(Unknown));
        linked.link.heal();
        linked.other.wait_for_the_end_of(&backends).await;
        let first = comes_to_be_added(&linked.store.repository, "lost").await;
        assert!(matches!(first, New(_)));
        is_stored_once(&linked, "lost", &[first, ask(&linked.store.repository, "lost").await]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_whose_answer_was_cut_off_is_answered_when_it_is_sent_again() {
    for (settings, done) in both_ways(&settings()).into_iter().zip(["SELECT 1\0", "COMMIT\0Z"]) {
        let mut linked = linked(settings).await;
        linked.link.hold(done);
        assert_eq!(ask_and_cut(&linked, "lost").await, Failed(Unknown));
        linked.link.heal();
        let again = comes_to_be_added(&linked.store.repository, "lost").await;
        assert!(matches!(again, Again(_)), "it was stored: {again:?}");
        is_stored_once(&linked, "lost", &[again]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_frozen_link_a_request_fails_in_time_and_adds_once_when_it_is_sent_again() {
    for (settings, outcome) in both_ways(&impatient()).into_iter().zip([Unknown, Unavailable]) {
        let mut linked = linked(settings).await;
        linked.link.freeze();
        let start = Instant::now();
        assert_eq!(ask(&linked.store.repository, "lost").await, Failed(outcome));
        assert!(start.elapsed() < TIMEOUT + MARGIN);
        assert_eq!(ask(&linked.store.repository, "lost").await, Failed(Unavailable), "its key is free");
        // What was under way arrives now, and may meet what is sent again.
        linked.link.heal();
        let first = comes_to_be_added(&linked.store.repository, "lost").await;
        comes_to(&linked.store.repository, Answered, PATIENCE).await;
        is_stored_once(&linked, "lost", &[first, comes_to_be_added(&linked.store.repository, "lost").await]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_whose_process_the_server_ends_is_new_when_it_is_sent_again() {
    for settings in both_ways(&settings()) {
        let linked = linked(settings).await;
        let locking = Session::of(&linked.database).await;
        locking.lock().await;
        let end = async {
            linked.other.wait_for_waiting(1).await;
            linked.other.terminate_backends().await;
        };
        let (lost, ()) = tokio::join!(ask(&linked.store.repository, "lost"), end);
        assert_eq!(lost, Failed(Unknown));
        locking.unlock().await;
        let first = comes_to_be_added(&linked.store.repository, "lost").await;
        assert!(matches!(first, New(_)));
        is_stored_once(&linked, "lost", &[first]).await;
    }
}

/// Nobody is left who would end its transaction, and the link does not tell the server so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_whose_commit_never_arrives_does_not_keep_its_key_from_others() {
    let [_, settings] = both_ways(&impatient());
    let linked = linked(settings.clone()).await;
    let elsewhere = Store::at(linked.database.url(), settings).await;
    comes_to_be_added(&elsewhere.repository, "another").await;
    linked.link.hold("COMMIT\0");
    assert_eq!(ask(&linked.store.repository, "lost").await, Failed(Unknown));
    let first = comes_to_be_added(&elsewhere.repository, "lost").await;
    assert!(matches!(first, New(_)));
    is_stored_once(&linked, "lost", &[first]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_whose_commit_waited_for_a_standby_is_answered_when_it_is_sent_again() {
    for settings in both_ways(&impatient()) {
        let Served { store, server } = Served::new(settings).await;
        comes_to_be_added(&store.repository, "another").await;
        server.sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
        server.sql("postgres", "SELECT pg_reload_conf()");
        let start = Instant::now();
        let mut number = 0;
        let lost = loop {
            let name = format!("lost {number}");
            match ask(&store.repository, &name).await {
                Failed(Unknown) => break name,
                other => assert!(start.elapsed() < PATIENCE, "it does not wait: {other:?}"),
            }
            number += 1;
        };
        // Sent again meanwhile, it waits as well.
        while ask(&store.repository, &lost).await != Failed(Unknown) {
            assert!(start.elapsed() < PATIENCE, "it does not wait");
            a_moment().await;
        }
        server.sql("postgres", "ALTER SYSTEM RESET synchronous_standby_names");
        server.sql("postgres", "SELECT pg_reload_conf()");
        let again = comes_to_be_added(&store.repository, &lost).await;
        assert!(matches!(again, Again(_)), "{again:?}");
        let stored = server.sql("postgres", &format!("SELECT id FROM pets WHERE name = '{lost}'"));
        assert_eq!(stored, again.id().to_string());
    }
}
