//! What most tests use.

pub(crate) use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

pub(crate) use animal_store_adapters_sqlite::{
    FileUse, NewBackup, SqliteApiKeyStore, SqliteBulkStorage, SqliteFile, SqliteSettings, diagnose,
};
pub(crate) use animal_store_app::{
    ports::{AddPet, ApiKeyStore, BulkStorage, PetRepository, Readiness, StoreFailure},
    test_support::{
        failures::{CORRUPT, OVERLOADED, TIMED_OUT, UNAVAILABLE, UNKNOWN, assert_fails},
        join_tasks, key_changes, new_pet, stored_pets, wait_until,
    },
};
pub(crate) use animal_store_domain::Pet;
pub(crate) use diesel::connection::SimpleConnection;
pub(crate) use tempfile::TempDir;

pub(crate) use crate::{
    disk::{new_folder, read, remove, rename, set_mode, write},
    sql,
    store::{
        Store, TIMEOUT, assert_refused, closed_file, copy_of_crash, files, files_in, index_of,
        log_of, mode, new_path, open, path_in, request, settings,
    },
};
