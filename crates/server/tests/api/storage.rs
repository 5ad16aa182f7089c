//! Each operation over the storage that `TEST_STORAGE_BACKEND` names. The contract suites of `app` own the rules.

mod idempotency;
mod pagination;
mod pets;
