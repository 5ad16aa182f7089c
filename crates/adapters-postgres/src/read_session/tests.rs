use std::time::Instant;

use animal_store_test_servers::PgDatabase;
use diesel::sql_types::Text;
use diesel_async::RunQueryDsl;

use super::*;
use crate::{Migrations, PgEndpoint, endpoint::Opened, settings::PLANS};

const PATIENCE: Duration = Duration::from_secs(10);

/// A session as behind a pooler.
async fn pooled(database: &PgDatabase) -> (Arc<Open<ReadSession>>, crate::endpoint::Driver) {
    let endpoint = PgEndpoint::new(&database.url().into()).unwrap();
    Migrations::new(endpoint.clone(), PATIENCE).run().await.unwrap();
    let settings = PostgresSettings { transaction_pooling: true, ..PostgresSettings::of_tests(PATIENCE) };
    let Opened { client, driver } = endpoint.connect(PATIENCE).await.unwrap();
    (Arc::new(Open::new(ReadSession::begin(client, &settings).await.unwrap())), driver)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_pooler_plans_are_made_as_elsewhere_and_no_setting_stays() {
    #[derive(diesel::QueryableByName)]
    struct Setting {
        #[diesel(sql_type = Text)]
        setting: String,
    }
    let database = PgDatabase::new();
    let (open, _driver) = pooled(&database).await;
    let mut connection = &open.session.connection;
    let names: Vec<_> = PLANS.iter().map(|setting| setting.split_once(" = ").unwrap().0).collect();
    let ask = format!(
        "SELECT string_agg(concat(name, ' = ', setting), ' ' ORDER BY array_position('{{{}}}', name)) AS setting
         FROM pg_settings WHERE name = ANY ('{{{0}}}')",
        names.join(",")
    );
    let before: Setting = diesel::sql_query(&ask).get_result(&mut connection).await.unwrap();
    connection.batch_execute(&open.session.turns.as_ref().unwrap().begin).await.unwrap();
    let during: Setting = diesel::sql_query(&ask).get_result(&mut connection).await.unwrap();
    connection.batch_execute("COMMIT").await.unwrap();
    let after: Setting = diesel::sql_query(&ask).get_result(&mut connection).await.unwrap();

    assert_eq!(during.setting, PLANS.join(" "));
    let defaults = "plan_cache_mode = auto enable_seqscan = on enable_bitmapscan = on enable_sort = on \
        enable_nestloop = on jit = on";
    assert_eq!(before.setting, defaults);
    assert_eq!(after.setting, before.setting);
}

/// Otherwise those that clients have left would pile up before a slow database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_leaves_before_its_turn_does_not_ask() {
    let database = PgDatabase::new();
    let (open, _driver) = pooled(&database).await;
    let turn = open.session.turns.as_ref().unwrap().turn.lock().await;
    let asked: Vec<_> =
        (0..10).map(|_| tokio::spawn(Arc::clone(&open).ask(PetQuery::One { id: 1 }, PATIENCE))).collect();
    let start = Instant::now();
    // The lock is one, those who wait for it hold it, too.
    while Arc::strong_count(&open.session.turns.as_ref().unwrap().turn) < 11 {
        assert!(start.elapsed() < PATIENCE, "nobody waits");
        tokio::task::yield_now().await;
    }
    for asked in asked {
        asked.abort();
        assert!(asked.await.is_err_and(|error| error.is_cancelled()));
    }
    assert_eq!(Arc::strong_count(&open), 1);

    drop(turn);
    let rows = open.ask(PetQuery::One { id: 1 }, PATIENCE).await.unwrap();
    assert!(rows.is_empty());
}

/// Otherwise many of those would take the connection from those whose turn it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_does_not_get_its_turn_in_time_leaves_the_connection_to_others() {
    let database = PgDatabase::new();
    let (open, _driver) = pooled(&database).await;
    let turn = Arc::clone(&open.session.turns.as_ref().unwrap().turn).lock_owned().await;
    let late = Arc::clone(&open).ask(PetQuery::One { id: 1 }, Duration::from_millis(10)).await;
    assert!(matches!(late, Err(StorageError::Timeout)));
    assert!(!open.is_given_up());

    drop(turn);
    assert!(open.ask(PetQuery::One { id: 1 }, PATIENCE).await.unwrap().is_empty());
}
