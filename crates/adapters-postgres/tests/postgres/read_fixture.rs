//! A storage that reads pets through a view, which reports each row that a statement reads. While the table is locked,
//! the test decides which reads wait for the same batch.

use std::ops::Deref;

use animal_store_domain::{CategoryId, NewPet, PetName, PetStatus::Available};

use crate::prelude::*;

/// A statement that reads a `bad` pet fails.
const VIEW: &str = "
    CREATE SCHEMA reporting;
    CREATE FUNCTION reporting.report(pet public.pets) RETURNS boolean LANGUAGE plpgsql AS $$
    BEGIN
        IF pet.name = 'bad' THEN
            RAISE 'this pet is bad, the timeout is %', current_setting('statement_timeout');
        END IF;
        -- Equal notifications of a transaction would be sent once.
        PERFORM pg_notify('rows', concat_ws('|', concat_ws(' ', pg_backend_pid(), statement_timestamp()), pet.id,
            current_query(), random()));
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
    /// The server's process and the time.
    execution: String,
    pub(crate) text: String,
    /// The ids of its rows, in ascending order.
    pub(crate) ids: Vec<i64>,
}

pub(crate) struct ReadFixture {
    store: Store,
    pub(crate) observer: SqlSession,
    pets: Vec<Pet>,
    _database: PgDatabase,
}

/// A fixture is used like its storage.
impl Deref for ReadFixture {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
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

/// The row of a pet, in SQL.
fn row(pet: &Pet) -> String {
    let id = pet.id().get();
    let new_pet = pet.new_pet();
    let name = new_pet.name().as_str();
    let category_id = new_pet.category_id().get();
    // 0 is no status.
    let status = new_pet.status().map_or(0, PetStatus::number);
    format!("({id}, '{name}', {category_id}, nullif({status}, 0))")
}

impl ReadFixture {
    pub(crate) async fn with(settings: PostgresSettings, pets: Vec<Pet>) -> Self {
        let database = migrated().await;
        database.sql(VIEW);
        let observer = SqlSession::of(&database).await;
        observer.run("LISTEN rows").await;
        let mut fixture = Self {
            store: Store::in_schema(&database, "reporting", settings).await,
            observer,
            pets,
            _database: database,
        };
        // The connection for reads begins with one. One that still prepares its statements would wait for locks of the
        // table.
        for kind in &KINDS[..2] {
            fixture.read(*kind).await.expect("a response");
        }
        fixture.wait_for_connections().await;
        let rows: Vec<_> = fixture.pets.iter().map(row).collect();
        let rows = rows.join(", ");
        let insert = "INSERT INTO pets (id, name, category_id, status) VALUES";
        fixture.observer.run(&format!("{insert} {rows}")).await;
        fixture.statements().await;
        fixture
    }

    /// Runs a test without and with transaction pooling, at the same time. Reads have one connection.
    pub(crate) async fn in_both_modes(pets: Vec<Pet>, test: impl AsyncFn(Self)) {
        let start = async |settings| test(Self::with(settings, pets.clone()).await).await;
        in_both_modes(&one_connection(), start).await;
    }

    /// The response to a read, from the pets in memory.
    pub(crate) fn expected(&self, read: Read) -> Vec<Pet> {
        let pets = self.pets.iter().cloned();
        match read {
            Get(id) => pets.filter(|pet| pet.id().get() == id).collect(),
            List(status, after, limit) => pets
                .filter(|pet| pet.id().get() > after)
                .filter(|pet| status.is_none() || pet.new_pet().status() == status)
                .take(limit)
                .collect(),
        }
    }

    /// Starts a read. It is in the queue, or has its response, when this returns.
    pub(crate) fn read(&self, read: Read) -> BoxFuture<'static, Response> {
        match read {
            Get(id) => self.find(id).map_ok(Vec::from_iter).boxed(),
            List(status, after, limit) => self.list(status, after, limit),
        }
    }

    /// Sends these reads while another one of their kind is in flight.
    pub(crate) async fn read_together(&self, kind: Read, reads: &[Read]) -> Vec<Response> {
        let first = self.observer.block(|| self.read(kind)).await;
        let batch: Vec<_> = reads.iter().map(|&read| self.read(read)).collect();
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
            let report = self.observer.notification().await;
            if report == "end" {
                break;
            }
            let parts: Vec<_> = report.split('|').collect();
            let [execution, id, text] = parts[..3] else {
                panic!("{report}")
            };
            let id = id.parse().expect("an id");
            match statements.iter_mut().find(|it| it.execution == execution) {
                Some(statement) => statement.ids.push(id),
                None => statements.push(Statement {
                    execution: execution.to_owned(),
                    text: text.to_owned(),
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
