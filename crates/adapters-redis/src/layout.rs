use animal_store_app::{ApiKeyDigest, ports::ApiKeyUse};

/// Names in Redis. Each contains the version of the layout, so that programs with different layouts share no entry.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// Prefix of the names of tokens. Each token is a hash, see `token` and `admin/stored_key`.
    pub(crate) tokens: String,
    /// Name of the index, a hash: for each API key id, the digests of its tokens, oldest first, separated by spaces.
    pub(crate) index: String,
    /// Prefix of the names of the record of uses, see `use_record`.
    uses: String,
    /// Pattern of all names, as in the rules for a Redis user.
    pub(crate) names: String,
}

impl Layout {
    pub(crate) fn new(prefix: &str) -> Self {
        Self {
            tokens: format!("{prefix}v1:token:"),
            index: format!("{prefix}v1:index"),
            uses: format!("{prefix}v1:uses:"),
            names: format!("{prefix}v1:*"),
        }
    }

    pub(crate) fn token(&self, digest: &ApiKeyDigest) -> String {
        self.tokens.clone() + &hex::encode(digest.as_bytes())
    }

    /// Returns the digest of the token with this name.
    pub(crate) fn digest(&self, name: &[u8]) -> Option<ApiKeyDigest> {
        parse_digest(name.strip_prefix(self.tokens.as_bytes())?)
    }

    /// Returns the name of a part of the record of uses.
    pub(crate) fn uses(&self, part: &str) -> String {
        self.uses.clone() + part
    }

    /// Returns the name of the sorted set of the last uses of this kind.
    pub(crate) fn last_uses(&self, kind: ApiKeyUse) -> String {
        self.uses(match kind {
            ApiKeyUse::Request => "request",
            ApiKeyUse::GetPet => "get-pet",
        })
    }
}

/// Parses a digest as the names of tokens and the index have it.
pub(crate) fn parse_digest(hex: &[u8]) -> Option<ApiKeyDigest> {
    let mut digest = [0; 32];
    hex::decode_to_slice(hex, &mut digest).ok()?;
    Some(ApiKeyDigest::from_bytes(digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_token_ends_with_the_sha_256_of_its_text() {
        let layout = Layout::new("shop:");
        let digest = ApiKeyDigest::of(&"abc".into());
        let name = layout.token(&digest);

        assert_eq!(name, "shop:v1:token:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(layout.digest(name.as_bytes()), Some(digest));
        assert_eq!(layout.index, "shop:v1:index");
        assert_eq!(layout.names, "shop:v1:*");
    }

    #[test]
    fn no_invalidation_follows_the_record_of_uses() {
        let layout = Layout::new("shop:");
        let names = [ApiKeyUse::Request, ApiKeyUse::GetPet].map(|kind| layout.last_uses(kind));
        assert_eq!(names, ["shop:v1:uses:request", "shop:v1:uses:get-pet"]);
        assert!(!names.iter().any(|name| name.starts_with(&layout.tokens)));
    }

    #[test]
    fn any_other_name_is_not_the_name_of_a_token() {
        let layout = Layout::new("shop:");
        let digits = "0".repeat(64);
        for name in [
            "shop:v1:token:".to_owned(),
            format!("shop:v1:token:{}", &digits[1..]),
            format!("shop:v1:token:{digits}0"),
            format!("shop:v1:token:x{}", &digits[1..]),
            format!("shop:v2:token:{digits}"),
            digits,
        ] {
            assert_eq!(layout.digest(name.as_bytes()), None, "{name}");
        }
    }
}
