use std::path::Path;

use animal_store_app::test_support::new_pet;
use diesel::define_sql_function;
use prometheus_client::registry::Registry;
use tempfile::TempDir;
use tokio::{join, runtime::Handle, time::advance};

use super::*;
use crate::{FileUse, values::number};

define_sql_function! {
    /// Advances the clock.
    fn take_long() -> Integer;
}

const TIMEOUT: Duration = Duration::from_secs(20);

fn writer(path: &Path) -> (Sender<Create>, Arc<Writer>) {
    let file = SqliteFile::open(path, FileUse::Create, TIMEOUT).unwrap();
    let [metrics] = QueueMetrics::register(&mut Registry::default(), ["create"]);
    let (sender, takers) = queue(1, None, metrics);
    let (session, taker, retention) = (
        Session::new(&file),
        takers.taker(),
        Duration::from_hours(24),
    );
    (
        sender,
        Arc::new(Writer {
            session,
            taker,
            retention,
        }),
    )
}

#[tokio::test(start_paused = true)]
async fn after_a_long_transaction_another_process_has_time_for_two_attempts_to_take_the_lock() {
    let folder = TempDir::new().unwrap();
    let (sender, writer) = writer(&folder.path().join("pets.db"));
    let write = async || {
        let start = Instant::now();
        let create = Create(AddPet {
            pet: new_pet(),
            idempotency_key: None,
        });
        let (added, ()) = join!(sender.send(create, TIMEOUT), writer.write());
        assert!(added.unwrap().is_some());
        start.elapsed()
    };
    assert_eq!(write().await, Duration::ZERO);

    let transaction = LONG_TRANSACTION * 2;
    let trigger = "CREATE TEMP TRIGGER long AFTER INSERT ON pets BEGIN SELECT take_long(); END";
    let prepare = |connection: &mut SqliteConnection| {
        take_long_utils::register_impl(connection, move || {
            Handle::current().block_on(advance(transaction));
            0
        })?;
        Ok(connection.batch_execute(trigger)?)
    };
    writer.session.execute(prepare).unwrap();
    // Shorter than the transaction by far: the other process does not delay creates more than necessary.
    let (least, most) = (
        transaction + Duration::from_millis(2),
        transaction + LONG_TRANSACTION / 2,
    );
    let taken = write().await;
    assert!((least..most).contains(&taken), "{taken:?}");
}

#[tokio::test]
async fn while_the_file_is_moved_a_sweep_deletes_nothing() {
    let folder = TempDir::new().unwrap();
    let (path, moved) = (
        folder.path().join("pets.db"),
        folder.path().join("moved.db"),
    );
    let (_sender, writer) = writer(&path);
    let mut connection = writer.session.file.connect().unwrap();
    connection
        .batch_execute(
            "INSERT INTO idempotency_keys VALUES ('old', x'01', x'00', 1, 1);
            INSERT INTO idempotency_readings VALUES (1)",
        )
        .unwrap();
    for (from, to, deleted, rows) in [(&path, &moved, 0, 1), (&moved, &path, 1, 0)] {
        std::fs::rename(from, to).unwrap();
        assert_eq!(writer.sweep().await, deleted);
        assert_eq!(
            number(&mut connection, "SELECT count(*) FROM idempotency_keys").unwrap(),
            rows
        );
    }
}

#[test]
fn sweeps_come_four_times_in_a_retention_and_once_a_minute_at_least() {
    assert_eq!(sweep_pause(Duration::from_secs(20)), Duration::from_secs(5));
    assert_eq!(
        sweep_pause(Duration::from_hours(24)),
        Duration::from_mins(1)
    );
}
