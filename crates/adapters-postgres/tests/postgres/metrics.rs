//! Metrics of requests and batches. The unit tests of `batching` have their values.

use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_request_is_counted_by_itself() {
    let database = PgDatabase::new();
    let store = Store::at(database.url(), settings()).await;
    let kinds = ["read", "create", "create_with_key"];
    let counts = || kinds.map(|kind| store.requests_and_batches(kind));
    store.find(1).await.expect("a response");
    for status in [None, Some(Sold)] {
        store.list(status, 0, 1).await.expect("a list");
    }
    assert_eq!(counts(), [[3, 3], [0, 0], [0, 0]]);
    store.add("Rex").await.expect("added");
    assert_eq!(counts(), [[3, 3], [1, 1], [0, 0]]);
    store.add_keyed("Rex").await;
    assert_eq!(counts(), [[3, 3], [1, 1], [1, 1]]);
}
