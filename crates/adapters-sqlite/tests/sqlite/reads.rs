//! Reads that fail or take long.

use std::sync::atomic::{AtomicBool, Ordering};

use animal_store_domain::{PetId, PetStatus};
use diesel::connection::{InstrumentationEvent, set_default_instrumentation};
use tokio::{runtime::Builder, select, sync::Mutex, time::timeout};

use crate::{moved::REPLACED, prelude::*};

const MANY: &str = "
    INSERT INTO pets (name, category_id, status, created_at)
    WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 50000)
    SELECT 'pet ' || n, 1, 1, 0 FROM number";

#[tokio::test]
async fn a_corrupt_page_fails_only_the_reads_that_need_it() {
    let store = Store::new();
    store.execute(MANY);
    let store = Store::at(store.close().await);
    // A page in the middle of the table.
    let query = "SELECT pageno FROM dbstat WHERE name = 'pets' AND pagetype = 'leaf' ORDER BY path LIMIT 1 OFFSET 100";
    sql::overwrite_page(&store.path(), store.number(query));

    let listed = store.repository.list(None, None, usize::MAX).await;
    let cause = assert_fails(listed, CORRUPT);
    assert!(cause.contains("malformed"), "{cause}");
    assert!(store.find(1).await.is_some());
    let available = Some(PetStatus::Available);
    let listed = store.repository.list(available, None, 20).await;
    assert_eq!(listed.expect("listed").len(), 20);
    let added = store.add("later").await;
    assert_eq!(store.find(added.id().get()).await, Some(added));
}

/// A folder takes the place of the file: only a new connection finds it.
#[tokio::test]
async fn the_connection_of_a_failed_read_is_replaced() {
    let store = Store::new();
    let pet = store.add("Rex").await;
    let path = store.path();
    let moved = path.with_extension("moved");
    sql::execute(&path, "ALTER TABLE pets RENAME TO hidden");
    rename(&path, &moved);
    fs::create_dir(&path).expect("created");
    let mut causes = Vec::new();
    // More than there are connections.
    for _ in 0..5 {
        let found = store.try_find(pet.id().get()).await;
        causes.push(assert_fails(found, UNAVAILABLE));
    }
    let is_replaced = causes.iter().any(|cause| cause.contains(REPLACED));
    assert!(is_replaced, "{causes:?}");
    fs::remove_dir(&path).expect("removed");
    rename(&moved, &path);
    sql::execute(&path, "ALTER TABLE hidden RENAME TO pets");
    assert_eq!(store.find(pet.id().get()).await, Some(pet));
}

/// Ids of pets: a read of the first one panics, and a read of the second one waits for the gate.
const PANICS: i64 = 424_242;
const WAITS: i64 = 535_353;

static GATE: Mutex<()> = Mutex::const_new(());
static IS_WAITING: AtomicBool = AtomicBool::new(false);

#[expect(
    clippy::needless_pass_by_value,
    reason = "the signature of an instrumentation"
)]
fn on_event(event: InstrumentationEvent<'_>) {
    let InstrumentationEvent::StartQuery { query, .. } = event else {
        return;
    };
    let query = query.to_string();
    assert!(!query.contains(&PANICS.to_string()), "a panic of the test");
    if query.contains(&WAITS.to_string()) {
        IS_WAITING.store(true, Ordering::Relaxed);
        drop(GATE.blocking_lock());
    }
}

fn instrument_reads() {
    set_default_instrumentation(|| Some(Box::new(on_event))).expect("set");
}

/// The runtime has one thread: a read on it would stall all tasks.
#[tokio::test]
async fn a_batch_that_takes_long_stalls_no_other_request() {
    instrument_reads();
    let store = Store::new();
    let pet = store.add("Rex").await;
    let gate = GATE.lock().await;
    let repository = Arc::clone(&store.repository);
    let id = PetId::parse(WAITS).expect("an id");
    let slow = tokio::spawn(async move { repository.find(id).await });
    let is_waiting = async || IS_WAITING.load(Ordering::Relaxed);
    wait_until("the read waits", is_waiting).await;
    for _ in 0..10 {
        assert_eq!(store.find(pet.id().get()).await.as_ref(), Some(&pet));
    }
    assert!(!slow.is_finished());
    drop(gate);
    assert_eq!(slow.await.expect("no panic").expect("found"), None);
}

/// One batch has all of them.
#[tokio::test]
async fn a_panic_fails_its_batch_and_no_later_read() {
    instrument_reads();
    let store = Store::new();
    let pet = store.add("Rex").await;
    // More than there are dispatchers.
    for _ in 0..5 {
        let failed = tokio::join!(store.try_find(PANICS), store.try_find(pet.id().get()));
        assert_fails(failed.0, UNAVAILABLE);
        assert_fails(failed.1, UNAVAILABLE);
        assert_eq!(store.find(pet.id().get()).await.as_ref(), Some(&pet));
    }
}

#[tokio::test]
async fn a_row_that_is_not_a_pet_is_corrupt() {
    let store = Store::new();
    let bad = [
        ("CAST(x'ff' AS TEXT)", "invalid utf-8"),
        ("' '", "name, id 2"),
        ("'a' || char(10)", "name, id 3"),
    ];
    for ((name, text), number) in bad.into_iter().zip(1..) {
        let insert = format!("INSERT INTO pets VALUES ({number}, {name}, 1, 1, 0)");
        store.execute(&insert);
        let cause = assert_fails(store.try_find(number).await, CORRUPT);
        assert!(cause.contains(text), "{cause}");
    }
    let replacement_character = "INSERT INTO pets VALUES (4, char(65533), 1, 1, 0)";
    store.execute(replacement_character);
    assert!(store.find(4).await.is_some());
}

#[tokio::test]
async fn a_storage_that_can_read_and_write_is_ready() {
    let store = Store::new();
    store.readiness.check().await.expect("ready");
    let timeout = Duration::from_millis(300);
    let file = SqliteFile::open(&store.path(), FileUse::Write, timeout);
    let brief = SqliteSettings {
        timeout,
        ..settings()
    };
    let other = Store::over(file.expect("a file"), brief);
    let lock = store.lock();
    let unready = other.readiness.check().await;
    unready.expect_err("another process writes");
    drop(lock);
    let readiness = store.readiness.clone();
    store.close().await;
    readiness.check().await.expect_err("ended");
}

/// The process ends with this task. Without a thread for blocking work, tokio panics.
#[test]
fn if_a_dispatcher_panics_the_task_of_the_writer_ends() {
    let runtime = Builder::new_current_thread()
        // The system refuses such a thread.
        .thread_stack_size(1 << 60)
        .enable_time()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let mut store = Store::new();
        let id = PetId::parse(1).expect("an id");
        select! {
            ended = &mut store.threads => ended.expect("it does not panic"),
            found = store.repository.find(id) => panic!("{found:?}"),
        }
    });
}

/// A client may repeat probes for as long as the disk does not respond. Here, they wait for a lock.
#[test]
fn probes_that_wait_occupy_one_thread_even_after_their_clients_have_left() {
    // One for probes, and one for reads.
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(2)
        .enable_time()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let store = Store::new();
        let pet = store.add("Rex").await;
        let lock = store.lock();
        let mut waiting = store.readiness.check();
        for probe in [&mut store.readiness.check(), &mut waiting] {
            let ended = timeout(Duration::ZERO, probe).await;
            ended.expect_err("it waits");
        }
        assert_eq!(store.find(pet.id().get()).await, Some(pet));
        drop(lock);
        waiting.await.expect("ready");
    });
}
