//! What most tests use.

pub(crate) use std::{
    sync::Arc,
    time::{Duration, Instant},
};

pub(crate) use animal_store_adapters_redis::{
    RedisApiKeyDirectory, RedisApiKeyStore, RedisEndpoint, RedisSettings, RedisTls,
};
pub(crate) use animal_store_app::{
    ApiKey, ApiKeyChange, IssuedApiKey,
    ports::{
        ApiKeyChangeError, ApiKeyDirectory, ApiKeyStore, ApiKeyUse, ApiKeyUses, ChangedApiKey,
        StoreFailure,
    },
    test_support::{
        api_key_id,
        failures::{CORRUPT, OVERLOADED, TIMED_OUT, UNAVAILABLE, UNKNOWN, assert_fails},
        key_changes::{add, revoke, rotate},
        wait_until,
    },
};
pub(crate) use animal_store_test_servers::{FaultProxy, RedisServer};
pub(crate) use futures_util::{FutureExt, future::join_all};
pub(crate) use prometheus_client::registry::Registry;
pub(crate) use tokio::{join, sync::oneshot, task::JoinHandle, time::timeout};

pub(crate) use crate::{
    requests::{
        Accepted, Failed, Outcome, Refused, becomes, cached, changes_to, find_in_memory, is_ready,
        pause, use_token,
    },
    setup::{
        HOUR, Keys, LEASE, Proxied, TEST_TIMEOUT, endpoint, few_seconds, find, long_lease,
        long_timeouts, long_wait, metric, name, settings, url_of,
    },
};
