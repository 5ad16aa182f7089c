//! The adapters over real Redis servers, and over links that fail.

mod cache;
mod connections;
mod contract;
mod corrupt;
mod in_flight;
mod keys;
mod lifetimes;
mod links;
mod look_ups;
mod permissions;
mod races;
mod refusals;
mod uses;
mod windows;
