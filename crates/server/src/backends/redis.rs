//! The backend `redis`: API keys that several instances share.

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use animal_store_adapters_redis::{
    RedisApiKeyDirectory, RedisApiKeyStore, RedisApiKeyUses, RedisClientCertificate, RedisEndpoint,
    RedisEndpointError, RedisSettings, RedisTls, diagnose, diagnose_administration,
};
use animal_store_app::{Finding, ports::ApiKeyStore};
use animal_store_settings::{
    Setting, Values,
    parsers::{duration, number, valid},
};
use async_trait::async_trait;
use prometheus_client::registry::Registry;

use super::{Access, ApiKeys, ApiKeysBackend, Backend, EXPOSED};

pub(crate) const SETTINGS: &[Setting] = &[
    Setting::secret(
        URL,
        "`redis://[user:password@]host[:port][/database]`, `rediss://…` for TLS, \
         `redis+sentinel://[user:password@]host[:port],…/service[/database]`, or \
         `unix:///path[?db=number&user=name&pass=password]`. Required by the backend `redis`.",
    ),
    Setting::secret(
        ADMIN_URL,
        "URL for `keys`, `copy` and `backup`, if it differs: one of a user that may change keys.",
    ),
    Setting::new(
        "keys.redis.wait_replicas",
        "0",
        "Number of replicas that must confirm a change of a command. With fewer, the change is kept and the exit code \
         is 1: a fail-over can lose it.",
    ),
    Setting::new(
        AUTHORITY,
        "",
        "PEM file with the certificate authorities of Redis and its Sentinels, or with self-signed certificates of \
         theirs that are no authority (`CA:FALSE`). Empty: the authorities of the system.",
    ),
    Setting::new(
        CERTIFICATE,
        "",
        "PEM file with the client certificate, if Redis requires one.",
    ),
    Setting::new(
        PRIVATE_KEY,
        "",
        "PEM file with the private key of the client certificate.",
    ),
    Setting::new(
        "keys.redis.prefix",
        "animal-store:",
        "Prefix of every name in Redis.",
    ),
    Setting::new(
        "keys.redis.lease",
        "600ms",
        "Longest time for which cached API keys, revoked ones too, are accepted while Redis does not respond. Redis \
         is probed twice in this time.",
    ),
    Setting::new(
        "keys.redis.max_known",
        "10000",
        "Maximum number of cached tokens of API keys, and of keys whose uses are not written yet.",
    ),
];

const URL: &str = "keys.redis.url";
const ADMIN_URL: &str = "keys.redis.admin_url";
const AUTHORITY: &str = "keys.redis.tls_ca_file";
const CERTIFICATE: &str = "keys.redis.tls_cert_file";
const PRIVATE_KEY: &str = "keys.redis.tls_key_file";

const LEASE: RangeInclusive<Duration> = Duration::from_millis(50)..=Duration::from_mins(1);

/// A command waits for Redis for longer than a request does.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);

/// Redis, and how it is used.
#[derive(Debug)]
pub(crate) struct RedisConfig {
    pub(crate) endpoint: RedisEndpoint,
    /// How `keys`, `copy` and `backup` connect, if it differs.
    pub(crate) admin_endpoint: Option<RedisEndpoint>,
    /// Number of replicas that must confirm a change of a command.
    pub(crate) wait_replicas: u8,
    pub(crate) directory: RedisSettings,
}

impl RedisConfig {
    /// Returns how to connect to Redis. `None`: it has no URL, or there is an error.
    pub(crate) fn read(values: &mut Values) -> Option<Self> {
        let prefix = valid("1 to 100 visible ASCII characters", |prefix: &String| {
            let is_short = (1..=100).contains(&prefix.len());
            is_short && prefix.bytes().all(|byte| byte.is_ascii_graphic())
        });
        let wait_replicas = values.get("keys.redis.wait_replicas", number(0..=16));
        let directory = RedisSettings {
            prefix: values.get("keys.redis.prefix", prefix),
            lease: values.get("keys.redis.lease", duration(LEASE)),
            max_known: values.get("keys.redis.max_known", number(1..=10_000_000)),
            ..RedisSettings::default()
        };
        let tls = read_tls(values)?;
        let endpoint = read_endpoint(values, URL, &tls);
        let admin_endpoint = read_endpoint(values, ADMIN_URL, &tls);
        Some(Self {
            endpoint: endpoint?,
            admin_endpoint,
            wait_replicas,
            directory,
        })
    }

    /// Requires what a source of API keys needs.
    pub(crate) fn require(values: &mut Values) {
        values.require(
            values.is_set(URL),
            &[URL],
            "is required if keys.backend is redis",
        );
    }

    /// Returns how commands connect.
    pub(crate) fn administration(&self) -> &RedisEndpoint {
        self.admin_endpoint.as_ref().unwrap_or(&self.endpoint)
    }
}

#[async_trait]
impl Backend for RedisConfig {
    fn place(&self) -> String {
        format!("redis {}", self.endpoint)
    }

    async fn diagnose(&self, _: bool) -> Vec<Finding> {
        let mut findings = diagnose(&self.endpoint, &self.directory).await;
        if let Some(endpoint) = &self.admin_endpoint {
            findings.push(diagnose_administration(endpoint, &self.directory).await);
        }
        findings
    }

    fn exposure(&self) -> Option<Finding> {
        let is_exposed = self.endpoint.is_exposed() || self.administration().is_exposed();
        let advice = "use rediss:// in the URLs of keys.redis";
        is_exposed.then(|| Finding::warning("redis.encryption", EXPOSED, advice))
    }
}

#[async_trait]
impl ApiKeysBackend for RedisConfig {
    async fn start(&self, _: &mut Access, registry: &mut Registry) -> anyhow::Result<ApiKeys> {
        let endpoint = &self.endpoint;
        let settings = &self.directory;
        let (uses, writer) = RedisApiKeyUses::start(endpoint.clone(), settings, registry);
        let (directory, session) =
            RedisApiKeyDirectory::connect(endpoint.clone(), settings.clone(), registry).await;
        let directory = Arc::new(directory);
        Ok(ApiKeys {
            readiness: Some(directory.clone()),
            directory,
            uses: Arc::new(uses),
            tasks: vec![writer],
            session: Some(session),
        })
    }

    async fn open_store(&self, _: &mut Access) -> anyhow::Result<Option<Arc<dyn ApiKeyStore>>> {
        let store = RedisApiKeyStore::new(
            self.administration().clone(),
            &self.directory.prefix,
            COMMAND_TIMEOUT,
            self.wait_replicas,
        );
        Ok(Some(Arc::new(store)))
    }

    fn administered_place(&self) -> String {
        format!("redis {}", self.administration())
    }
}

/// Reads the certificates. They are checked also if there is no URL to use them with.
fn read_tls(values: &mut Values) -> Option<RedisTls> {
    values.require(
        values.is_set(CERTIFICATE) == values.is_set(PRIVATE_KEY),
        &[CERTIFICATE, PRIVATE_KEY],
        "and keys.redis.tls_key_file must be set together",
    );
    let authority = values.file(AUTHORITY, false);
    let certificate = values.file(CERTIFICATE, false);
    let private_key = values.file(PRIVATE_KEY, true);
    let mut tls = RedisTls {
        authority,
        client: None,
    };
    if let Some(certificate) = certificate
        && let Some(private_key) = private_key
    {
        tls.client = Some(RedisClientCertificate {
            certificate,
            private_key: private_key.into(),
        });
    }
    check_endpoint(values, URL, tls.check())?;
    Some(tls)
}

fn read_endpoint(values: &mut Values, name: &str, tls: &RedisTls) -> Option<RedisEndpoint> {
    let url = values.secret(name)?;
    check_endpoint(values, name, RedisEndpoint::parse(&url, tls.clone()))
}

/// Returns what was opened, or adds the error about the URL, or about the file that the error is about.
fn check_endpoint<T>(
    values: &mut Values,
    url: &str,
    opened: Result<T, RedisEndpointError>,
) -> Option<T> {
    let name = match opened {
        Err(RedisEndpointError::Authority(_)) => AUTHORITY,
        Err(RedisEndpointError::Certificate(_)) => CERTIFICATE,
        Err(RedisEndpointError::PrivateKey(_)) => PRIVATE_KEY,
        _ => url,
    };
    values.check(name, opened)
}
