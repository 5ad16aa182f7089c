//! The files of the migrations, whatever they do.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use animal_store_adapters_postgres::Migrations;
use animal_store_test_servers::PgDatabase;

use crate::store::endpoint;

/// Everything that a migration may make, in the schema that it is made in. The places of columns are left out: those
/// that are dropped keep theirs.
const SCHEMA: &str = "
    SELECT 'relation', relname, concat_ws(' ', relkind, relpersistence, reloptions) AS what FROM pg_class
        WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT 'column', attrelid::regclass || '.' || attname,
        concat_ws(' ', format_type(atttypid, atttypmod), attnotnull, attidentity, attgenerated, attstorage,
            pg_get_expr(adbin, adrelid), col_description(attrelid, attnum))
        FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
        WHERE relnamespace = 'public'::regnamespace AND attnum > 0 AND NOT attisdropped
    UNION ALL SELECT 'constraint', conrelid::regclass || '.' || conname, pg_get_constraintdef(oid)
        FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT 'index', indexrelid::regclass::text, concat_ws(' ', pg_get_indexdef(indexrelid), indisvalid)
        FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT 'trigger', tgrelid::regclass || '.' || tgname, pg_get_triggerdef(oid)
        FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT 'function', oid::regprocedure::text, pg_get_functiondef(oid)
        FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT 'type', typname, concat_ws(' ', typtype, format_type(typbasetype, typtypmod))
        FROM pg_type WHERE typnamespace = 'public'::regnamespace
    UNION ALL SELECT 'label', enumtypid::regtype::text, enumlabel FROM pg_enum
    UNION ALL SELECT 'extension', extname, '' FROM pg_extension
    UNION ALL SELECT 'schema', nspname, '' FROM pg_namespace WHERE nspname !~ '^pg_(toast_)?temp'
    ORDER BY 1, 2, 3";

/// In the order in which they are run.
fn folders() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let entries = fs::read_dir(all).expect("the folder").map(|entry| entry.expect("an entry").path());
    let mut folders: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

fn name(folder: &Path) -> &str {
    folder.file_name().and_then(|name| name.to_str()).expect("a name")
}

fn sql(folder: &Path, file: &str) -> String {
    fs::read_to_string(folder.join(file)).unwrap_or_else(|error| panic!("{}/{file}: {error}", name(folder)))
}

#[test]
fn every_migration_is_named_by_its_number_and_its_kind() {
    let mut numbers = Vec::new();
    for folder in folders() {
        let name = name(&folder);
        let (number, rest) = name.split_once('_').expect("a number");
        assert!(number.len() == 4 && number.bytes().all(|digit| digit.is_ascii_digit()), "{name}");
        let what = rest.strip_prefix("expand_").or(rest.strip_prefix("contract_")).expect(name);
        assert!(!what.is_empty() && !what.contains("contract_") && !what.contains("expand_"), "{name}");
        assert!(name.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase() || byte.is_ascii_digit()), "{name}");
        // As long as the column that Diesel keeps it in.
        assert!(name.len() <= 50, "{name}");
        numbers.push(number.to_owned());
    }
    let count = numbers.len();
    numbers.dedup();
    assert!(count > 0 && numbers.len() == count, "{numbers:?}");
}

#[test]
fn every_migration_is_undone_exactly_and_can_be_made_again() {
    let database = PgDatabase::new();
    for folder in folders() {
        let (up, down) = (sql(&folder, "up.sql"), sql(&folder, "down.sql"));
        let before = database.sql(SCHEMA);
        database.sql(&up);
        let after = database.sql(SCHEMA);
        assert_ne!(after, before, "{}", name(&folder));
        database.sql(&down);
        assert_eq!(database.sql(SCHEMA), before, "{}", name(&folder));
        database.sql(&up);
        assert_eq!(database.sql(SCHEMA), after, "{}", name(&folder));
    }
}

/// So what was tried above is what the program does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_makes_what_the_files_make() {
    let (by_hand, by_program) = (PgDatabase::new(), PgDatabase::new());
    for folder in folders() {
        by_hand.sql(&sql(&folder, "up.sql"));
    }
    let done = Migrations::new(endpoint(by_program.url()), Duration::from_secs(10)).run().await.expect("they run");
    assert_eq!(done, folders().iter().map(|folder| name(folder)).collect::<Vec<_>>());

    by_program.sql("DROP TABLE __diesel_schema_migrations");
    assert_eq!(by_program.sql(SCHEMA), by_hand.sql(SCHEMA));
}
