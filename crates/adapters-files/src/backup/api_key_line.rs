use animal_store_app::{ApiKey, ApiKeyDigest, ApiKeyId, ApiKeyLabel, Scope, ports::ApiKeyRecord};
use serde::{Deserialize, Serialize};

use super::hex_digest;
use crate::time;

/// A line of a backup: a token of an API key.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApiKeyLine {
    api_key: ApiKeyObject,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ApiKeyObject {
    id: String,
    label: String,
    scopes: Vec<String>,
    token_sha256: String,
    last_four: String,
    created_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
}

impl ApiKeyLine {
    pub(super) fn from_record(record: &ApiKeyRecord) -> Self {
        Self {
            api_key: ApiKeyObject {
                id: record.key.id.to_string(),
                label: record.key.label.to_string(),
                scopes: record.key.scopes.iter().map(|scope| scope.as_str().to_owned()).collect(),
                token_sha256: hex::encode(record.digest.as_bytes()),
                last_four: record.last_four.clone(),
                created_at: time::format(record.created).to_string(),
                expires_at: record.expires.map(|expires| time::format(expires).to_string()),
            },
        }
    }

    /// Returns the token. `None`: a value is not valid.
    pub(super) fn into_record(self) -> Option<ApiKeyRecord> {
        let object = self.api_key;
        let expires = match object.expires_at {
            Some(expires_at) => Some(time::parse(&expires_at)?),
            None => None,
        };
        Some(ApiKeyRecord {
            key: ApiKey {
                id: ApiKeyId::parse(&object.id).ok()?,
                label: ApiKeyLabel::parse(&object.label).ok()?,
                scopes: object.scopes.iter().map(|scope| scope.parse::<Scope>()).collect::<Result<_, _>>().ok()?,
            },
            digest: ApiKeyDigest::from_bytes(hex_digest::parse(&object.token_sha256)?),
            last_four: object.last_four,
            created: time::parse(&object.created_at)?,
            expires,
        })
    }
}
