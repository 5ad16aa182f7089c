//! The adapters over real Redis servers, and over connections that fail.

mod cache;
mod connections;
mod contract;
mod corrupt;
mod diagnosis;
mod fake_sentinel;
mod in_flight;
mod links;
mod lookups;
mod permissions;
mod prelude;
mod refusals;
mod replaced;
mod requests;
mod revocations;
mod sentinels;
mod setup;
mod uses;
