//! The tables, as the migrations create them.

diesel::table! {
    pets (id) {
        id -> BigInt,
        name -> Text,
        category_id -> BigInt,
        status -> Nullable<SmallInt>,
    }
}

diesel::table! {
    /// Records of the migrations that were run, in a table of Diesel.
    __diesel_schema_migrations (version) {
        version -> Text,
    }
}
