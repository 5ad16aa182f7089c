//! What is promised about an animal whose connection failed while it was added: an answer means that it is stored once,
//! "not stored" that it never will be, and everything else that it is stored once or never.

use std::time::{Duration, Instant};

use animal_store_adapters_postgres::PostgresSettings;
use animal_store_app::ports::AddPetError;
use animal_store_domain::Pet;
use futures_util::{FutureExt, future::join_all};

use crate::{
    calls::{AT_ONCE, Answered, Deadline, PATIENCE, Unavailable, Unknown, a_moment, add, comes_to, of_add},
    session::Session,
    store::{Linked, MARGIN, Served, TIMEOUT, both_ways, impatient, settings},
};

/// Adds an animal, and meanwhile does something as soon as the link holds something up.
async fn add_and(linked: &Linked, name: &str, something: impl AsyncFnOnce()) -> Result<Pet, AddPetError> {
    let meanwhile = async {
        let start = Instant::now();
        while linked.link.held() == 0 {
            assert!(start.elapsed() < PATIENCE, "nothing is held up");
            a_moment().await;
        }
        something().await;
    };
    tokio::join!(add(&linked.store.repository, name), meanwhile).0
}

/// How often this animal is stored, once nothing can change it any more.
async fn stored_in_the_end(linked: &mut Linked, name: &str, backends: &[String]) -> usize {
    linked.link.heal();
    linked.other.wait_for_the_end_of(backends).await;
    comes_to(&linked.store.repository, Answered, PATIENCE).await;
    linked.other.named(name).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_add_that_was_cut_off_on_its_way_there_is_unknown() {
    for settings in both_ways(&settings()) {
        let mut linked = Linked::new(settings).await;
        let backends = linked.other.backends().await;
        linked.link.hold("lost");
        let added = add_and(&linked, "lost", async || linked.link.cut()).await;
        assert_eq!(of_add(&added), Unknown);
        assert_eq!(stored_in_the_end(&mut linked, "lost", &backends).await, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_add_whose_answer_was_cut_off_is_unknown_and_stored_once() {
    // How PostgreSQL says that it is done, the last thing of all.
    for (settings, done) in both_ways(&settings()).into_iter().zip(["SELECT 1\0", "COMMIT\0Z"]) {
        let mut linked = Linked::new(settings).await;
        let backends = linked.other.backends().await;
        linked.link.hold(done);
        let added = add_and(&linked, "lost", async || linked.link.cut()).await;
        assert_eq!(of_add(&added), Unknown);
        assert_eq!(stored_in_the_end(&mut linked, "lost", &backends).await, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_add_over_a_frozen_link_fails_in_time_and_is_stored_once_at_the_most() {
    // In a transaction, it is the first word of that which is not answered: nothing was sent after it.
    for (settings, outcome) in both_ways(&impatient()).into_iter().zip([Unknown, Unavailable]) {
        let mut linked = Linked::new(settings).await;
        let backends = linked.other.backends().await;
        linked.link.freeze();
        let start = Instant::now();
        assert_eq!(of_add(&add(&linked.store.repository, "lost").await), outcome);
        assert!(start.elapsed() < TIMEOUT + MARGIN);
        assert_eq!(of_add(&add(&linked.store.repository, "never").await), Unavailable);
        // Not all of them have been given up.
        linked.link.cut();
        assert!(stored_in_the_end(&mut linked, "lost", &backends).await <= 1);
        assert_eq!(linked.other.named("never").await, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_add_whose_answer_does_not_come_is_unknown_in_time_and_stored_once() {
    let mut linked = Linked::new(impatient()).await;
    let backends = linked.other.backends().await;
    linked.link.hold("SELECT 1\0");
    let start = Instant::now();
    assert_eq!(of_add(&add(&linked.store.repository, "lost").await), Unknown);
    assert!(start.elapsed() < TIMEOUT + MARGIN);
    linked.link.cut();
    assert_eq!(stored_in_the_end(&mut linked, "lost", &backends).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_add_whose_process_the_server_ends_is_unknown_at_once() {
    for settings in both_ways(&settings()) {
        let mut linked = Linked::new(settings).await;
        let backends = linked.other.backends().await;
        let locking = Session::of(&linked.database).await;
        locking.lock().await;
        let end = async {
            linked.other.wait_for_waiting(1).await;
            linked.other.terminate_backends().await;
            Instant::now()
        };
        let (added, ended) = tokio::join!(add(&linked.store.repository, "lost"), end);
        assert_eq!(of_add(&added), Unknown);
        assert!(ended.elapsed() < AT_ONCE);
        locking.unlock().await;
        assert_eq!(stored_in_the_end(&mut linked, "lost", &backends).await, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_add_in_whose_midst_the_server_ends_is_unknown() {
    let Served { store, mut server } = Served::new(settings()).await;
    let locking = Session::at(&server.url("postgres")).await;
    locking.lock().await;
    let mut lost = Box::pin(add(&store.repository, "lost"));
    assert!((&mut lost).now_or_never().is_none());
    locking.wait_for_waiting(1).await;
    server.stop();
    assert_eq!(of_add(&lost.await), Unknown);
    comes_to(&store.repository, Unavailable, AT_ONCE).await;
    assert_eq!(of_add(&add(&store.repository, "never").await), Unavailable);
    server.start_again();
    comes_to(&store.repository, Answered, AT_ONCE).await;
    let names = server.sql("postgres", "SELECT name FROM pets WHERE name <> 'Rex'");
    assert_eq!(names, "", "nothing was committed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_connection_nothing_is_stored() {
    let mut linked = Linked::new(settings()).await;
    linked.link.refuse();
    comes_to(&linked.store.repository, Unavailable, AT_ONCE).await;
    let start = Instant::now();
    for added in join_all((0..100).map(|_| add(&linked.store.repository, "never"))).await {
        assert_eq!(of_add(&added), Unavailable);
    }
    assert!(start.elapsed() < AT_ONCE);
    assert_eq!(stored_in_the_end(&mut linked, "never", &[]).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_add_that_the_server_ended_in_time_is_not_stored_and_costs_no_connection() {
    for settings in both_ways(&PostgresSettings { timeout: Duration::from_secs(2), ..settings() }) {
        let linked = Linked::new(settings).await;
        let backends = linked.other.backends().await;
        let locking = Session::of(&linked.database).await;
        locking.lock().await;
        assert_eq!(of_add(&add(&linked.store.repository, "never").await), Deadline);
        locking.unlock().await;
        assert_eq!(of_add(&add(&linked.store.repository, "later").await), Answered);
        assert_eq!(linked.other.backends().await, backends);
        assert_eq!(linked.other.named("never").await, 0);
    }
}

/// Otherwise such commits would take up every connection that the server has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_waits_for_a_standby_for_ever_is_unknown_and_does_not_wait_on() {
    let Served { store, server } = Served::new(impatient()).await;
    server.sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    server.sql("postgres", "SELECT pg_reload_conf()");
    let start = Instant::now();
    let mut adds = 1;
    while of_add(&add(&store.repository, "Rex").await) != Unknown {
        assert!(start.elapsed() < PATIENCE, "it does not wait");
        adds += 1;
    }
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    while server.sql("postgres", waiting) != "0" {
        assert!(start.elapsed() < PATIENCE, "it waits on");
        a_moment().await;
    }
    // The first one is of the storage's own start.
    assert_eq!(server.sql("postgres", "SELECT count(*) FROM pets"), (adds + 1).to_string());
}
