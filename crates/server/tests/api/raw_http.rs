//! HTTP/1 as attackers, proxies and broken clients write it: one answer to one request, never a 5xx, nothing smuggled.

mod bodies;
mod chunks;
mod expectations;
mod heads;
mod lengths;
mod pipelining;
mod targets;
mod versions;
