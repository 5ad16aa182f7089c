//! The queries of `pets`.
//!
//! Each plan is made once per connection, without the values (`plan_cache_mode = force_generic_plan`): with a bound
//! LIMIT, PostgreSQL would otherwise plan every execution, at twice the cost. The queries are written so that no such
//! plan is bad. A status is compared as a range, in the order of the index on (status, id): with `status = $1 … ORDER
//! BY id`, PostgreSQL may walk along the primary key and read all pets of other statuses. Gets are in the order of the
//! primary key: without an order, a plan made on a small table may use the other index.

use tokio_postgres::types::Type;

use crate::{
    batching::Query,
    pet_row::{ARRAYS, PET},
};

/// The pets with the ids `$1`.
pub(super) fn gets() -> Query {
    let text = format!("SELECT {PET} FROM pets WHERE id = ANY ($1) ORDER BY id");
    let types = vec![Type::INT8_ARRAY];
    Query { text, types }
}

/// The first `$2` pets with ids greater than `$1`.
pub(super) fn list() -> Query {
    let text = format!("SELECT {PET} FROM pets WHERE id > $1 ORDER BY id LIMIT $2");
    let types = vec![Type::INT8, Type::INT8];
    Query { text, types }
}

/// The first `$3` pets of status `$1` with ids greater than `$2`.
pub(super) fn list_by_status() -> Query {
    let text = format!(
        "SELECT {PET} FROM pets WHERE status BETWEEN $1 AND $1 AND id > $2
        ORDER BY status, id LIMIT $3"
    );
    let types = vec![Type::INT2, Type::INT8, Type::INT8];
    Query { text, types }
}

/// Several times [`list`]: a row per list.
pub(super) fn lists() -> Query {
    let text = format!(
        "SELECT list.position, page.* FROM unnest($1, $2) WITH ORDINALITY AS list (after, max, position)
        CROSS JOIN LATERAL (SELECT array_agg(status), {ARRAYS} FROM (
            SELECT * FROM pets WHERE id > list.after ORDER BY id LIMIT list.max
        ) AS pet) AS page"
    );
    let types = vec![Type::INT8_ARRAY, Type::INT8_ARRAY];
    Query { text, types }
}

/// Several times [`list_by_status`]: a row per list.
pub(super) fn lists_by_status() -> Query {
    let text = format!(
        "SELECT list.position, page.*
        FROM unnest($1, $2, $3) WITH ORDINALITY AS list (after, max, status, position)
        CROSS JOIN LATERAL (SELECT NULL::smallint[], {ARRAYS} FROM (
            SELECT * FROM pets WHERE status BETWEEN list.status AND list.status AND id > list.after
            ORDER BY status, id LIMIT list.max
        ) AS pet) AS page"
    );
    let types = vec![Type::INT8_ARRAY, Type::INT8_ARRAY, Type::INT2_ARRAY];
    Query { text, types }
}
