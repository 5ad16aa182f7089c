//! HTTP/1 as attackers, proxies and broken clients write it: one response per request, never a 5xx, nothing smuggled.

mod bodies;
mod chunks;
mod expectations;
mod heads;
mod lengths;
mod pipelining;
mod targets;
mod versions;
