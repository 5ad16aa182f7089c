//! Each operation over a storage. The contract suites of `app` own the rules.

mod idempotency;
mod pets;
