//! The interface, row by row, over a real socket through the real application.
//!
//! The same tests run against every storage backend: `TEST_STORAGE_BACKEND` names it, `memory` by default.

mod client;
mod create_pet;
mod test_app;
