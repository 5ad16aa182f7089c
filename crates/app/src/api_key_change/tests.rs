use std::time::UNIX_EPOCH;

use super::*;
use crate::{from_milliseconds, ports::ChangedApiKey, test_support::api_key};

const HOUR: Duration = Duration::from_hours(1);

/// A time in milliseconds.
fn at(milliseconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(milliseconds)
}

fn new_token(digest: u8, lifetime: Option<Duration>) -> NewToken {
    NewToken {
        digest: ApiKeyDigest([digest; 32]),
        last_four: "last".to_owned(),
        lifetime,
    }
}

fn token(digest: u8, created: u64, expires: Option<u64>) -> IssuedToken {
    let NewToken {
        digest, last_four, ..
    } = new_token(digest, None);
    IssuedToken {
        digest,
        last_four,
        created: at(created),
        expires: expires.map(at),
    }
}

fn key(tokens: impl Into<Vec<IssuedToken>>) -> IssuedApiKey {
    IssuedApiKey {
        key: api_key("key"),
        tokens: tokens.into(),
    }
}

fn id() -> ApiKeyId {
    api_key("key").id
}

type Applied = Result<Option<IssuedApiKey>, ApiKeyRefusal>;

fn add(before: Option<&IssuedApiKey>, token: NewToken) -> Applied {
    ApiKeyChange::Add(api_key("key"), token).apply(before, None, at(5_000))
}

fn rotate(before: Option<&IssuedApiKey>, token: NewToken, grace: Duration) -> Applied {
    ApiKeyChange::Rotate(id(), token, grace).apply(before, None, at(5_000))
}

fn import(before: Option<&IssuedApiKey>, given: IssuedApiKey) -> Applied {
    ApiKeyChange::Import(given).apply(before, None, at(5_000))
}

#[test]
fn an_added_key_has_its_token() {
    assert_eq!(
        add(None, new_token(1, None)),
        Ok(Some(key([token(1, 5_000, None)])))
    );
    assert_eq!(
        add(None, new_token(1, Some(HOUR))),
        Ok(Some(key([token(1, 5_000, Some(3_605_000))])))
    );
}

#[test]
fn an_id_and_a_token_belong_to_one_key() {
    let before = key([token(1, 0, None)]);
    assert_eq!(
        add(Some(&before), new_token(2, None)),
        Err(ApiKeyRefusal::IdTaken(id()))
    );
    assert_eq!(
        add(Some(&before), new_token(1, None)),
        Err(ApiKeyRefusal::TokenTaken(before.key.clone()))
    );
    assert_eq!(
        rotate(Some(&before), new_token(1, None), HOUR),
        Err(ApiKeyRefusal::TokenTaken(before.key.clone()))
    );
    for change in [
        ApiKeyChange::Add(api_key("key"), new_token(9, None)),
        ApiKeyChange::Rotate(id(), new_token(9, None), HOUR),
        ApiKeyChange::Import(key([token(8, 0, None), token(9, 1, None)])),
    ] {
        let owner = api_key("owner");
        assert!(change.digests().contains(&new_token(9, None).digest));
        assert_eq!(
            change.apply(Some(&before), Some(&owner), at(0)),
            Err(ApiKeyRefusal::TokenTaken(owner))
        );
    }
}

#[test]
fn an_unknown_key_is_neither_rotated_nor_revoked() {
    assert_eq!(
        rotate(None, new_token(1, None), HOUR),
        Err(ApiKeyRefusal::UnknownId)
    );
    assert_eq!(
        ApiKeyChange::Revoke(id()).apply(None, None, at(0)),
        Err(ApiKeyRefusal::UnknownId)
    );
}

#[test]
fn a_revoked_key_does_not_exist() {
    let change = ApiKeyChange::Revoke(id());
    assert_eq!((change.id(), change.digests()), (&id(), Vec::new()));
    for before in [
        key([token(1, 0, None), token(2, 1, None)]),
        IssuedApiKey::unreadable(id()),
    ] {
        assert_eq!(change.apply(Some(&before), None, at(0)), Ok(None));
    }
}

#[test]
fn old_tokens_expire_with_the_grace_period_or_before() {
    let before = key([
        token(1, 0, Some(6_000)),
        token(2, 1, Some(20_000)),
        token(3, 2, None),
    ]);
    let after = rotate(Some(&before), new_token(4, None), Duration::from_secs(10)).unwrap();
    let old = [
        token(1, 0, Some(6_000)),
        token(2, 1, Some(15_000)),
        token(3, 2, Some(15_000)),
    ];
    assert_eq!(
        after,
        Some(key([&old[..], &[token(4, 5_000, None)]].concat()))
    );

    let changed = |after| ChangedApiKey {
        before: None,
        after,
        at: at(5_000),
    };
    assert_eq!(changed(after).old_tokens_end(), at(15_000));

    let after = rotate(Some(&before), new_token(4, None), Duration::ZERO).unwrap();
    assert_eq!(
        after,
        Some(key([token(4, 5_000, None)])),
        "without grace they have expired now"
    );
    assert_eq!(changed(after).old_tokens_end(), at(5_000));
}

#[test]
fn a_new_token_expires_after_its_lifetime_or_with_the_newest_old_one() {
    let before = key([token(1, 0, Some(9_000)), token(2, 1, Some(8_000))]);
    for (lifetime, expires) in [(None, 8_000), (Some(HOUR), 3_605_000)] {
        let after = rotate(Some(&before), new_token(3, lifetime), Duration::ZERO).unwrap();
        assert_eq!(after, Some(key([token(3, 5_000, Some(expires))])));
    }
}

#[test]
fn a_new_token_is_the_newest_even_if_the_clock_was_set_back() {
    let before = key([token(1, 7_000, None)]);
    let after = rotate(Some(&before), new_token(2, None), HOUR)
        .unwrap()
        .unwrap();
    assert_eq!(after.tokens[1].created, at(7_001));
}

#[test]
fn times_are_whole_milliseconds_that_can_be_printed() {
    let now = at(5_000) + Duration::from_micros(300);
    for (lifetime, expires) in [
        (Duration::from_nanos(1), at(5_001)),
        (Duration::from_micros(700), at(5_001)),
        (Duration::from_nanos(700_001), at(5_002)),
        (Duration::MAX, from_milliseconds(i64::MAX)),
    ] {
        let change = ApiKeyChange::Add(api_key("key"), new_token(1, Some(lifetime)));
        let added = change.apply(None, None, now).unwrap().unwrap();
        assert_eq!(
            (added.tokens[0].created, added.tokens[0].expires),
            (at(5_000), Some(expires)),
            "{lifetime:?}"
        );
    }
    let before = key([token(1, 0, None)]);
    let rotated = rotate(Some(&before), new_token(2, None), Duration::MAX)
        .unwrap()
        .unwrap();
    assert_eq!(rotated.tokens[0].expires, Some(from_milliseconds(i64::MAX)));
}

#[test]
fn an_imported_key_has_the_valid_tokens_of_the_source() {
    let given = key([
        token(1, 0, Some(5_000)),
        token(2, 1, Some(5_001)),
        token(3, 2, None),
    ]);
    let valid = key([token(2, 1, Some(5_001)), token(3, 2, None)]);
    assert_eq!(import(None, given.clone()), Ok(Some(valid.clone())));
    assert_eq!(
        import(Some(&key([token(3, 2, None)])), given.clone()),
        Ok(Some(valid.clone()))
    );
    assert_eq!(import(Some(&valid), given), Ok(Some(valid)));
    assert_eq!(import(None, key([token(1, 0, Some(1))])), Ok(None));
}

#[test]
fn an_import_that_contradicts_the_store_is_refused() {
    let given = key([token(1, 0, Some(9_000))]);
    for stored in [
        token(2, 0, None),
        token(1, 0, None),
        token(1, 0, Some(9_001)),
    ] {
        assert_eq!(
            import(Some(&key([stored])), given.clone()),
            Err(ApiKeyRefusal::OtherTokens(id()))
        );
    }
    let other = IssuedApiKey {
        key: ApiKey {
            scopes: Scopes::default(),
            ..api_key("key")
        },
        ..given.clone()
    };
    assert_eq!(
        import(Some(&other), given),
        Err(ApiKeyRefusal::IdTaken(id()))
    );
}

#[test]
fn a_stored_token_has_at_most_four_characters_that_can_be_printed() {
    let stored = |last_four: &str| {
        IssuedToken::from_stored(ApiKeyDigest([1; 32]), last_four.to_owned(), 7, Some(9))
    };
    assert_eq!(stored("last"), Ok(token(1, 7, Some(9))));
    assert!(stored("").is_ok() && stored("lastx").is_err() && stored("a\n").is_err());
}
