//! A migration that exists never changes: databases have applied it, and do not apply it again.

use std::{collections::BTreeMap, fs, path::Path};

use sha2::{Digest, Sha256};

/// Each migration, with the SHA-256 of its `up.sql`. A new migration adds a line.
const DIGESTS: [(&str, &str); 6] = [
    (
        "postgres/0001-expand_create_tables",
        "f870794b4ac28f7d6edd0439b3595b0265502bf51127a449e7af37c824b56b85",
    ),
    (
        "postgres/0002-expand_create_api_keys",
        "79ea801fe5ec91765eb979d4e36cc30d0294f28e449e1fb3c7cc1d5d44d01fc6",
    ),
    (
        "postgres/0003-expand_create_key_histories",
        "25286b997e2fd074247b9e832d97747b714714376812a6e038ef79a66aea2d5e",
    ),
    (
        "sqlite/0001-expand_create_tables",
        "a332702513464bff5fa8d9f28abd757e74740d9e4fe54355715382a34a01797a",
    ),
    (
        "sqlite/0002-expand_create_api_key_changes",
        "90d024559e763b0936bb746e29156e3f29a75c289c95eb4f583345c1b4abbe04",
    ),
    (
        "sqlite/0003-expand_create_key_histories",
        "86fcecbac5938498ff4fe880d0bf5205547357e47001b87f8db597e764151ed9",
    ),
];

#[test]
fn no_migration_that_exists_was_changed_or_removed() {
    let mut found = BTreeMap::new();
    for storage in ["postgres", "sqlite"] {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let folder = crates.join(format!("adapters-{storage}/migrations"));
        for entry in fs::read_dir(folder).expect("the migrations") {
            let path = entry.expect("an entry").path();
            let Ok(sql) = fs::read(path.join("up.sql")) else {
                continue;
            };
            let name = path.file_name().expect("a name").to_string_lossy();
            let digest = hex::encode(Sha256::digest(sql));
            found.insert(format!("{storage}/{name}"), digest);
        }
    }
    let known = DIGESTS.map(|(name, digest)| (name.to_owned(), digest.to_owned()));
    assert_eq!(found, BTreeMap::from(known));
}
