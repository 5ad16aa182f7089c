//! One animal for each idempotency key, whatever is sent to which of two instances, and whichever of them is killed when.
//!
//! Steps are taken from a list that is made at random. Answers are read beside them: nobody waits for one before the next
//! step. Then every create is retried until it is answered for good, and the table is compared with what was answered.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use animal_store_test_servers::PgDatabase;
use proptest::{collection::vec, prelude::*, test_runner::TestRunner};

use crate::{
    idempotency::{Answer, keyed_create, parse},
    postgres::over,
    program::{DEADLINE, Program, Running, TOKEN, read_to_end, send},
};

const CASES: u32 = 48;
const KEYS: usize = 6;

/// Makes time for crashes between an insert and its commit, and between that and its answer.
const SLOW_COMMITS: &str = "
    CREATE FUNCTION take_time() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_sleep(random() * 0.02); RETURN NULL; END';
    CREATE CONSTRAINT TRIGGER slow_commits AFTER INSERT ON pets DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION take_time()";

#[derive(Debug, Clone, Copy)]
enum Step {
    /// Sends a create, and reads its answer or hangs up.
    Create { instance: usize, key: usize, animal: usize, hangs_up: bool },
    /// Kills an instance, which is started again at once.
    Kill(usize),
    /// Lets this many milliseconds pass.
    Pause(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let instance = 0..2_usize;
    // Few of them are about another animal than the others with their key.
    let animal = prop_oneof![7 => Just(0_usize), 1 => Just(1)];
    let create = (instance.clone(), 0..KEYS, animal, prop::bool::weighted(0.1));
    prop_oneof![
        20 => create.prop_map(|(instance, key, animal, hangs_up)| Step::Create { instance, key, animal, hangs_up }),
        2 => instance.prop_map(Step::Kill),
        5 => (1..12_u64).prop_map(Step::Pause),
    ]
}

/// An animal, and the key that it is to be added with.
type Create = (usize, usize);

fn request(case: usize, (key, animal): Create) -> String {
    keyed_create(TOKEN, &format!("order-{case}-{key}"), &name(case, (key, animal)))
}

fn name(case: usize, (key, animal): Create) -> String {
    format!("animal-{case}-{key}-{animal}")
}

/// Two of them over one database, each of which may have to be started again.
struct Instances<'a> {
    database: &'a PgDatabase,
    running: [Running; 2],
}

impl<'a> Instances<'a> {
    fn start(database: &'a PgDatabase) -> Self {
        Self { database, running: [0, 1].map(|instance| program(database, instance).start()) }
    }

    fn kill(&mut self, instance: usize) {
        self.running[instance].kill();
        self.running[instance] = program(self.database, instance).start();
    }

    fn retry(&mut self, instance: usize, request: &str) -> Option<Answer> {
        parse(&read_to_end(send(self.running[instance].address(), request)))
    }
}

/// The second one creates as it would behind a pooler: in transactions that it ends itself.
fn program(database: &PgDatabase, instance: usize) -> Program {
    over(database.url())
        .env("ANIMAL_STORE_HTTP__WORKERS", "1")
        .env("ANIMAL_STORE_STORAGE__POSTGRES__TRANSACTION_POOLING", ["false", "true"][instance])
        .env("ANIMAL_STORE_STORAGE__POSTGRES__MIGRATE_URL", database.url())
}

/// What clients were told while the steps were taken.
#[derive(Default)]
struct Told {
    answers: Mutex<Vec<(Create, Answer)>>,
    /// By the end of a connection that had given no answer: nothing.
    cut_off: Mutex<BTreeSet<Create>>,
    /// Nothing either, because they did not listen.
    hung_up: Mutex<BTreeSet<Create>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A case that fails may be tried again with fewer steps.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the steps, and returns when all that was sent has been answered or has lost its connection.
fn take(steps: &[Step], case: usize, instances: &mut Instances<'_>) -> Told {
    let told = Told::default();
    thread::scope(|scope| {
        for &step in steps {
            match step {
                Step::Create { instance, key, animal, hangs_up } => {
                    let address = instances.running[instance].address();
                    let mut stream = send(address, &request(case, (key, animal)));
                    if hangs_up {
                        lock(&told.hung_up).insert((key, animal));
                        continue;
                    }
                    let told = &told;
                    scope.spawn(move || {
                        let mut text = String::new();
                        // Cut off where the instance was killed.
                        let _ = stream.read_to_string(&mut text);
                        match parse(&text) {
                            Some(answer) => lock(&told.answers).push(((key, animal), answer)),
                            None => drop(lock(&told.cut_off).insert((key, animal))),
                        }
                    });
                }
                Step::Kill(instance) => instances.kill(instance),
                Step::Pause(milliseconds) => thread::park_timeout(Duration::from_millis(milliseconds)),
            }
        }
    });
    told
}

/// How often that has happened which is to be tested.
#[derive(Debug, Default)]
struct Seen {
    answered: usize,
    cut_off: usize,
    /// Animals that were added by a create whose connection ended without an answer.
    answers_lost: usize,
    conflicts: usize,
}

/// Retries every create of the case until it is answered for good, and adds what it was told.
fn retry(case: usize, instances: &mut Instances<'_>, told: &Told) {
    let start = Instant::now();
    for key in 0..KEYS {
        for animal in [0, 1] {
            let create = (key, animal);
            loop {
                let answer = instances.retry(key % 2, &request(case, create)).expect("an answer");
                let last = matches!(answer.status, 201 | 422);
                lock(&told.answers).push((create, answer));
                if last {
                    break;
                }
                assert!(start.elapsed() < DEADLINE, "{create:?} is never answered for good");
            }
        }
    }
}

/// Compares the answers of a case with each other and with the table.
fn check(case: usize, told: &Told, database: &PgDatabase, seen: &mut Seen) -> Result<(), TestCaseError> {
    let answers = lock(&told.answers);
    let mut added: BTreeMap<usize, (Create, &Answer)> = BTreeMap::new();
    for (create, answer) in answers.iter() {
        match answer.status {
            201 => {
                let (first, told) = *added.entry(create.0).or_insert((*create, answer));
                prop_assert_eq!((first, &told.body), (*create, &answer.body));
            }
            409 => seen.conflicts += 1,
            422 => {}
            // A create that waited for another one too long.
            status => prop_assert_eq!(status, 503, "{:?}", answer),
        }
    }
    let (cut_off, hung_up) = (lock(&told.cut_off), lock(&told.hung_up));
    for (create, _) in added.values() {
        let firsts =
            answers.iter().filter(|(other, answer)| other == create && answer.status == 201 && !answer.replayed);
        let firsts = firsts.count();
        prop_assert!(firsts <= 1, "{} answers to {:?} say that they are the first", firsts, create);
        seen.answers_lost += usize::from(firsts == 0 && cut_off.contains(create) && !hung_up.contains(create));
    }
    seen.answered += answers.len();
    seen.cut_off += cut_off.len();

    // What a killed instance has sent may still be under way; this waits for it.
    let lock = "BEGIN; LOCK TABLE idempotency_keys, pets IN ACCESS EXCLUSIVE MODE; COMMIT";
    let rows =
        database.sql(&format!("{lock}; SELECT id, name FROM pets WHERE name LIKE 'animal-{case}-%' ORDER BY name"));
    let expected = added.values().map(|(create, answer)| {
        let pet: serde_json::Value = serde_json::from_str(&answer.body).expect("JSON");
        format!("{}|{}", pet["id"], name(case, *create))
    });
    prop_assert_eq!(rows, expected.collect::<Vec<_>>().join("\n"));
    prop_assert_eq!(added.len(), KEYS);
    Ok(())
}

#[test]
fn every_key_adds_one_animal_whatever_is_sent_again_and_whoever_is_killed() {
    let database = PgDatabase::new();
    assert_eq!(over(database.url()).args(&["migrate"]).run().code, Some(0));
    database.sql(SLOW_COMMITS);
    let (instances, seen) = (Mutex::new(Instances::start(&database)), Mutex::new(Seen::default()));
    let cases = Mutex::new(0..);

    let config =
        ProptestConfig { cases: CASES, max_shrink_time: 30_000, failure_persistence: None, ..Default::default() };
    let tested = TestRunner::new(config).run(&vec(step(), 20..60), |steps| {
        let case = lock(&cases).next().expect("there is always another one");
        let mut instances = lock(&instances);
        let told = take(&steps, case, &mut instances);
        retry(case, &mut instances, &told);
        check(case, &told, &database, &mut lock(&seen))
    });

    tested.unwrap_or_else(|error| panic!("{error}"));
    let seen = lock(&seen);
    assert!(seen.cut_off > 0 && seen.answers_lost > 0 && seen.conflicts > 0, "{seen:?}");
}
