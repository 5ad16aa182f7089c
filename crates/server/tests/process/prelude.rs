//! What most tests use.

pub(crate) use std::{
    fs::{self, File},
    io::{self, Write},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant, UNIX_EPOCH},
};

pub(crate) use animal_store_test_servers::{
    Certificates, HttpClient, PgDatabase, PostgresServer, RawConnection, RedisServer, Request,
    Response, wait_until,
};
pub(crate) use serde_json::{Value, json};
pub(crate) use tempfile::TempDir;

pub(crate) use crate::{
    new_key::NewKey,
    pets::{
        begin_create, create_request, is_replay, keyed_create_request, list_all, pages, status,
    },
    program::{
        DEADLINE, Exited, LONG_TIMEOUT, Program, Running, TOKEN, assert_all_refused,
        assert_members, lines, listen, metric, new_folder, only, paste, terminal,
    },
    store::{Store, odd_pets, without_ids},
};
