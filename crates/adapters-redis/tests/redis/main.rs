//! The adapters over real Redis servers, and over links that fail.

mod contract;
mod keys;
