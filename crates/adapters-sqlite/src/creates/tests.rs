use std::path::Path;

use animal_store_app::test_support::new_pet;
use diesel::{SqliteConnection, define_sql_function};
use prometheus_client::registry::Registry;
use tempfile::TempDir;

use super::*;
use crate::{FileUse, error::Problem, values::number};

define_sql_function! {
    /// Lasts longer than a long transaction.
    fn take_long() -> Integer;
}

const TIMEOUT: Duration = Duration::from_secs(20);

fn writer(path: &Path) -> (Sender<Create>, Writer) {
    let file = SqliteFile::open(path, FileUse::Create, TIMEOUT).unwrap();
    let [metrics] = QueueMetrics::register(&mut Registry::default(), ["create"]);
    let (sender, takers) = queue(1, None, metrics);
    let writer = Writer {
        session: Session::new(&file),
        taker: takers.taker(),
        retention: Duration::from_hours(24),
    };
    (sender, writer)
}

#[test]
fn after_a_long_transaction_another_process_has_time_for_two_attempts_to_take_the_lock() {
    assert_eq!(pause_after(LONG_TRANSACTION), None);
    let pause = pause_after(LONG_TRANSACTION + Duration::from_nanos(1)).unwrap();
    // Shorter than the transaction by far: the other process does not delay creates more than necessary.
    assert!((Duration::from_millis(2)..LONG_TRANSACTION / 2).contains(&pause));
}

#[tokio::test]
async fn the_duration_of_a_transaction_includes_its_statements() {
    let folder = TempDir::new().unwrap();
    let (sender, writer) = writer(&folder.path().join("pets.db"));
    let trigger = "CREATE TEMP TRIGGER long AFTER INSERT ON pets BEGIN SELECT take_long(); END";
    let prepare = |connection: &mut SqliteConnection| {
        take_long_utils::register_impl(connection, move || {
            let start = Instant::now();
            while start.elapsed() <= LONG_TRANSACTION {}
            0
        })?;
        Ok(connection.batch_execute(trigger)?)
    };
    writer.session.execute(prepare).unwrap();
    let create = Create(AddPet::new(new_pet()));
    let write = async {
        assert!(writer.taker.ready().await);
        writer.write_batch()
    };
    let (added, duration) = tokio::join!(sender.send(create, TIMEOUT), write);
    assert!(added.unwrap().is_some());
    assert!(duration > LONG_TRANSACTION);
}

#[test]
fn while_the_file_is_moved_a_sweep_deletes_nothing() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("pets.db");
    let moved = folder.path().join("moved.db");
    let (_sender, writer) = writer(&path);
    let mut connection = writer.session.file.connect().unwrap();
    connection
        .batch_execute(
            "INSERT INTO idempotency_keys VALUES ('old', x'01', x'00', 1, 1);
            INSERT INTO idempotency_readings VALUES (1)",
        )
        .unwrap();
    let mut count = || number(&mut connection, "SELECT count(*) FROM idempotency_keys").unwrap();
    let mut outage = Outage::default();
    std::fs::rename(&path, &moved).unwrap();
    assert_eq!(writer.sweep(&mut outage), 0);
    assert_eq!(count(), 1);
    let reason = Problem::Replaced.at(&path).to_string();
    outage.failed(reason, |_| panic!("each sweep would log it"));
    std::fs::rename(&moved, &path).unwrap();
    assert_eq!(writer.sweep(&mut outage), 1);
    assert_eq!(count(), 0);
}

#[test]
fn sweeps_come_four_times_in_a_retention_and_once_a_minute_at_least() {
    assert_eq!(sweep_pause(Duration::from_secs(20)), Duration::from_secs(5));
    assert_eq!(
        sweep_pause(Duration::from_hours(24)),
        Duration::from_mins(1)
    );
}
