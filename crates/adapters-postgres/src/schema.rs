//! The tables, as the migrations make them.

diesel::table! {
    pets (id) {
        id -> BigInt,
        name -> Text,
        category_id -> BigInt,
        status -> Nullable<SmallInt>,
    }
}

diesel::table! {
    /// Diesel's own record of the migrations that were run.
    __diesel_schema_migrations (version) {
        version -> Text,
    }
}
