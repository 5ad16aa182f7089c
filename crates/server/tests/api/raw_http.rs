//! HTTP/1 as attackers, proxies and broken clients write it: one response per request, never a 5xx, nothing smuggled.

mod bodies;
mod connection_end;
mod expectations;
mod pipelining;
mod refused_heads;
mod targets;
mod upgrades;
