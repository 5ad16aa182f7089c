//! Adds that share a commit.

use animal_store_adapters_postgres::PostgresSettings;

use crate::{
    fixture::Fixture,
    store::{in_both_modes, settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_wait_for_a_commit_share_the_next_one_up_to_a_thousand_pets() {
    in_both_modes(&PostgresSettings { max_waiting_creates: 3000, ..settings() }, async |settings| {
        let fixture = Fixture::with(settings).await;
        let names: Vec<_> = (0..2500).map(|number| number.to_string()).collect();
        let added = fixture.add_together(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let added = added.into_iter().map(|added| added.expect("added"));
        let added: Vec<_> = added.map(|pet| format!("{} {}", pet.id().get(), pet.new_pet().name().as_str())).collect();
        let pets = "FROM pets WHERE name NOT IN ('Rex', 'first')";
        let stored = fixture.observer.column(&format!("SELECT id || ' ' || name {pets} ORDER BY id")).await;
        assert_eq!(stored, added, "each has its own id");
        assert_eq!(fixture.names().await, names, "ids ascend in the order of the requests");
        let commits = format!("SELECT count(*) {pets} GROUP BY xmin::text ORDER BY min(id)");
        assert_eq!(fixture.observer.column(&commits).await, ["1000", "1000", "500"]);
    })
    .await;
}
