//! The tables of API keys, as the migrations create them.

diesel::table! {
    api_keys (id) {
        id -> Text,
        label -> Text,
        scopes -> Text,
        version -> BigInt,
    }
}

diesel::table! {
    api_key_tokens (digest) {
        digest -> Binary,
        api_key_id -> Text,
        last_four -> Text,
        created_at -> BigInt,
        expires_at -> Nullable<BigInt>,
    }
}

diesel::table! {
    api_key_marks (version) {
        version -> BigInt,
        mark -> Binary,
    }
}

diesel::table! {
    api_key_uses (api_key_id, kind) {
        api_key_id -> Text,
        kind -> SmallInt,
        last_used_at -> BigInt,
    }
}

diesel::table! {
    api_key_changes (id) {
        id -> BigInt,
        at -> BigInt,
        changed_by -> Text,
        change -> Text,
        api_key_id -> Text,
        label -> Text,
        scopes -> Text,
        expires_at -> Nullable<BigInt>,
        old_token_ends -> Nullable<BigInt>,
    }
}

diesel::joinable!(api_key_tokens -> api_keys (api_key_id));
diesel::allow_tables_to_appear_in_same_query!(api_keys, api_key_tokens, api_key_uses);
