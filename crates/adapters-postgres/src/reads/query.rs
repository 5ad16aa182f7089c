//! The queries of `pets`.
//!
//! Each plan is made once per connection, without the values (`plan_cache_mode = force_generic_plan`): with a bound
//! LIMIT, PostgreSQL would otherwise plan every execution, at twice the cost. The queries are written so that no such
//! plan is bad. A status is compared as a range, in the order of the index on (status, id): with `status = $1 … ORDER
//! BY id`, PostgreSQL may walk along the primary key and read all pets of other statuses. Gets are in the order of the
//! primary key: without an order, a plan made on a small table may use the other index.

use diesel::{
    dsl::AsSelect,
    pg::Pg,
    prelude::*,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sql_types::{Array, BigInt, SmallInt},
};

use crate::pet_row::{ARRAYS, PetArraysType, PetRow, pets};

/// The pets with these ids.
#[diesel::dsl::auto_type]
pub(super) fn gets(ids: Vec<i64>) -> _ {
    let row: AsSelect<PetRow, Pg> = PetRow::as_select();
    pets::table
        .filter(pets::id.eq_any(ids))
        .order(pets::id)
        .select(row)
}

/// The first pets with ids greater than `after`.
#[diesel::dsl::auto_type]
pub(super) fn list(after: i64, limit: i64) -> _ {
    let row: AsSelect<PetRow, Pg> = PetRow::as_select();
    pets::table
        .filter(pets::id.gt(after))
        .order(pets::id)
        .limit(limit)
        .select(row)
}

/// The first pets of a status with ids greater than `after`.
#[diesel::dsl::auto_type]
pub(super) fn list_by_status(status: i16, after: i64, limit: i64) -> _ {
    let row: AsSelect<PetRow, Pg> = PetRow::as_select();
    pets::table
        .filter(pets::status.between(status, status))
        .filter(pets::id.gt(after))
        .order((pets::status, pets::id))
        .limit(limit)
        .select(row)
}

/// Several times [`list`] or, with statuses, [`list_by_status`]: a row per list.
///
/// Diesel's DSL has no lateral join, and it does not keep the statement of an `sql_query` prepared.
pub(super) struct Lists {
    pub(super) after: Vec<i64>,
    pub(super) limits: Vec<i64>,
    pub(super) statuses: Option<Vec<i16>>,
}

/// Diesel identifies the two statements by their text.
impl QueryId for Lists {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for Lists {
    type SqlType = (BigInt, PetArraysType);
}

impl QueryFragment<Pg> for Lists {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("SELECT list.position, page.* FROM unnest(");
        out.push_bind_param::<Array<BigInt>, _>(&self.after)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<BigInt>, _>(&self.limits)?;
        if let Some(statuses) = &self.statuses {
            out.push_sql(", ");
            out.push_bind_param::<Array<SmallInt>, _>(statuses)?;
            out.push_sql(") WITH ORDINALITY AS list (after, max, status, position) CROSS JOIN LATERAL (SELECT ");
            out.push_sql(ARRAYS);
            out.push_sql(
                ", NULL::smallint[] FROM (
                    SELECT * FROM pets WHERE status BETWEEN list.status AND list.status AND id > list.after
                    ORDER BY status, id LIMIT list.max
                ) AS pet) AS page",
            );
        } else {
            out.push_sql(
                ") WITH ORDINALITY AS list (after, max, position) CROSS JOIN LATERAL (SELECT ",
            );
            out.push_sql(ARRAYS);
            out.push_sql(
                ", array_agg(status) FROM (
                    SELECT * FROM pets WHERE id > list.after ORDER BY id LIMIT list.max
                ) AS pet) AS page",
            );
        }
        Ok(())
    }
}
