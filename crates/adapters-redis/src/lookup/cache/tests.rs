use animal_store_app::test_support::api_key;

use super::*;

#[test]
fn a_lookup_that_is_dropped_ends_for_its_token() {
    let cache = Arc::new(Cache::new(4, 4, 1));
    let digest = ApiKeyDigest([7; 32]);
    let joined = cache.join_lookup(digest).unwrap();
    drop(joined.pending);
    assert!(
        joined.outcome.has_changed().is_err(),
        "a lookup that joined it learns of its end"
    );
    assert!(
        cache.join_lookup(digest).unwrap().pending.is_some(),
        "the next request queries Redis"
    );
}

/// Without a lease, a token is looked up although it is cached.
#[test]
fn a_lookup_replaces_what_was_cached_for_its_token() {
    let cache = Arc::new(Cache::new(4, 4, 1));
    let digest = ApiKeyDigest([7; 32]);
    for key in [
        Some(Arc::new(api_key("key"))),
        None,
        Some(Arc::new(api_key("other"))),
    ] {
        let pending = cache.join_lookup(digest).unwrap().pending.unwrap();
        pending.finish(Ok(TokenRecord {
            key: key.clone(),
            expires: None,
        }));
        assert_eq!(cache.get(&digest, Instant::now()).unwrap().key, key);
    }
    assert_eq!(cache.known.len() + cache.unknown.len(), 1);
}
