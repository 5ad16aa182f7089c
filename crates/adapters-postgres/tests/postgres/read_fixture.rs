//! A storage that reads pets through a view, which reports each row that a statement reads. While the table is locked,
//! the test decides which reads wait for the same batch.

use std::sync::Arc;

use animal_store_adapters_postgres::PostgresSettings;
use animal_store_app::ports::{PetRepository, StoreFailure};
use animal_store_domain::{
    CategoryId, NewPet, Pet, PetId, PetName,
    PetStatus::{self, Available, Pending, Sold},
};
use animal_store_test_servers::PgDatabase;
use futures_util::{
    FutureExt,
    future::{BoxFuture, join_all},
};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::{
    explain::{empty_tables, one_connection, with_schema},
    fixture::poll_once,
    outcomes::find,
    sql_session::SqlSession,
    store::{Store, in_both_modes},
};

/// A statement that reads a `bad` pet fails.
const VIEW: &str = "
    CREATE SCHEMA reporting;
    CREATE FUNCTION reporting.report(pet public.pets) RETURNS boolean LANGUAGE plpgsql AS $$
    BEGIN
        IF pet.name = 'bad' THEN
            RAISE 'this pet is bad, the timeout is %', current_setting('statement_timeout');
        END IF;
        -- Equal notifications of a transaction would be sent once.
        PERFORM pg_notify('rows', concat_ws('|', pg_backend_pid(), statement_timestamp(), pet.id, current_query(),
            random()));
        RETURN true;
    END $$;
    CREATE VIEW reporting.pets AS SELECT * FROM public.pets AS pet WHERE reporting.report(pet)";

#[derive(Debug, Clone, Copy)]
pub(crate) enum Read {
    Get(i64),
    /// Status, position (0 is the beginning) and limit.
    List(Option<PetStatus>, i64, usize),
}

pub(crate) use Read::{Get, List};

/// The pets of a list, or the one pet of a get.
pub(crate) type Response = Result<Vec<Pet>, StoreFailure>;

/// A read of each kind. All of them read pet 1 of [`pets`] and no other.
pub(crate) const KINDS: [Read; 3] = [Get(1), List(None, 0, 1), List(Some(Pending), 0, 1)];

/// A statement that was executed.
#[derive(Debug)]
pub(crate) struct Statement {
    /// Process id of the server's process, and the time.
    execution: [String; 2],
    pub(crate) text: String,
    /// The ids of its rows, in ascending order.
    pub(crate) ids: Vec<i64>,
}

pub(crate) struct ReadFixture {
    pub(crate) store: Store,
    pub(crate) observer: SqlSession,
    pets: Vec<Pet>,
    reports: UnboundedReceiver<String>,
    _database: PgDatabase,
}

/// Pets with the ids from 1 to this number. Each fourth one has no status.
pub(crate) fn pets(count: i64) -> Vec<Pet> {
    let statuses = [Some(Pending), Some(Sold), Some(Available), None];
    let numbered = (1..=count).zip(statuses.into_iter().cycle());
    let pets = numbered.map(|(id, status)| pet(id, &format!("pet {id}"), status));
    pets.collect()
}

pub(crate) fn pet(id: i64, name: &str, status: Option<PetStatus>) -> Pet {
    let name = PetName::parse(name).expect("a name");
    let new_pet = NewPet::new(name, CategoryId::new(-id)).with_status(status);
    Pet::new(PetId::parse(id).expect("an id"), new_pet)
}

impl ReadFixture {
    pub(crate) async fn with(settings: PostgresSettings, pets: Vec<Pet>) -> Self {
        let database = empty_tables().await;
        database.sql(VIEW);
        let store = with_schema(&database, "reporting", settings).await;
        let (observer, reports) = SqlSession::listening(&database, "rows").await;
        let mut fixture = Self {
            store,
            observer,
            pets: Vec::new(),
            reports,
            _database: database,
        };
        fixture.replace_pets(vec![pet(1, "Rex", None)]).await;
        // The connection for reads begins with one.
        for response in join_all(fixture.begin_all(&KINDS[..2])).await {
            response.expect("a response");
        }
        // A connection that still prepares its statements would wait for locks of the table.
        fixture.store.wait_for_connections().await;
        fixture.replace_pets(pets).await;
        fixture
    }

    /// Runs a test without and with transaction pooling, at the same time. Reads have one connection.
    pub(crate) async fn in_both_modes(pets: Vec<Pet>, test: impl AsyncFn(Self)) {
        let start = async |settings| test(Self::with(settings, pets.clone()).await).await;
        in_both_modes(&one_connection(), start).await;
    }

    /// Replaces all pets.
    async fn replace_pets(&mut self, pets: Vec<Pet>) {
        let row = |pet: &Pet| {
            let id = pet.id().get();
            let new_pet = pet.new_pet();
            let name = new_pet.name().as_str();
            let category_id = new_pet.category_id().get();
            // 0 is no status.
            let status = new_pet.status().map_or(0, PetStatus::number);
            format!("({id}, '{name}', {category_id}, nullif({status}, 0))")
        };
        let rows: Vec<_> = pets.iter().map(row).collect();
        let rows = rows.join(", ");
        let insert = "INSERT INTO pets (id, name, category_id, status) VALUES";
        let replace = format!("TRUNCATE pets; {insert} {rows}");
        self.observer.run(&replace).await;
        self.pets = pets;
        self.statements().await;
    }

    /// The response to a read, from the pets in memory.
    pub(crate) fn expected(&self, read: Read) -> Vec<Pet> {
        let matches = |pet: &&Pet| match read {
            Get(id) => pet.id().get() == id,
            List(status, after, _) => {
                pet.id().get() > after
                    && status.is_none_or(|status| pet.new_pet().status() == Some(status))
            }
        };
        let limit = if let List(.., limit) = read { limit } else { 1 };
        self.pets
            .iter()
            .filter(matches)
            .take(limit)
            .cloned()
            .collect()
    }

    /// Starts a read. It is in the queue, or has its response, when this returns.
    pub(crate) fn begin(&self, read: Read) -> BoxFuture<'static, Response> {
        let repository = Arc::clone(&self.store.repository);
        let load = async move {
            match read {
                Get(id) => Ok(Vec::from_iter(find(&repository, id).await?)),
                List(status, after, limit) => {
                    let after = PetId::parse(after).ok();
                    repository.list(status, after, limit).await
                }
            }
        };
        poll_once(load.boxed())
    }

    fn begin_all(&self, reads: &[Read]) -> Vec<BoxFuture<'static, Response>> {
        reads.iter().map(|&read| self.begin(read)).collect()
    }

    /// Locks the table, and makes a batch with this read wait for it.
    async fn block(&self, read: Read) -> BoxFuture<'static, Response> {
        self.observer.lock().await;
        let first = self.begin(read);
        self.observer.wait_for_table_locks(1).await;
        first
    }

    /// Sends these reads while another one of their kind is in flight.
    pub(crate) async fn read_together(&self, kind: Read, reads: &[Read]) -> Vec<Response> {
        let first = self.block(kind).await;
        let batch = self.begin_all(reads);
        self.observer.unlock().await;
        assert_eq!(first.await.expect("a response"), self.expected(kind));
        join_all(batch).await
    }

    /// As [`read_together`](Self::read_together). Each read succeeds.
    pub(crate) async fn succeed_together(&self, kind: Read, reads: &[Read]) {
        let responses = self.read_together(kind, reads).await;
        for (read, response) in reads.iter().zip(responses) {
            let pets = response.expect("a response");
            assert_eq!(pets, self.expected(*read), "{read:?}");
        }
    }

    /// Returns the statements that have read rows since the last call, in the order of their commits.
    pub(crate) async fn statements(&mut self) -> Vec<Statement> {
        self.observer.run("NOTIFY rows, 'end'").await;
        let mut statements: Vec<Statement> = Vec::new();
        loop {
            let report = self.reports.recv().await.expect("a report");
            if report == "end" {
                break;
            }
            let mut parts = report.split('|').map(str::to_owned);
            let [pid, time, id, text] = [(); 4].map(|()| parts.next().expect("a part of a report"));
            let execution = [pid, time];
            let id = id.parse().expect("an id");
            let mut known = statements.iter_mut().rev();
            match known.find(|it| it.execution == execution) {
                Some(statement) => statement.ids.push(id),
                None => statements.push(Statement {
                    execution,
                    text,
                    ids: vec![id],
                }),
            }
        }
        for statement in &mut statements {
            statement.ids.sort_unstable();
        }
        statements
    }
}
