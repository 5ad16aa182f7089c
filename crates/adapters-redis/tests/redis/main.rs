//! The adapters over real Redis servers, and over connections that fail.

mod cache;
mod connections;
mod contract;
mod corrupt;
mod diagnosis;
mod in_flight;
mod lifetimes;
mod links;
mod lookups;
mod messages;
mod metrics;
mod permissions;
mod races;
mod refusals;
mod requests;
mod revocations;
mod setup;
mod stalls;
mod uses;
mod windows;
