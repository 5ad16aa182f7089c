use std::{
    fmt::Display,
    time::{Duration, SystemTime},
};

use animal_store_app::{milliseconds, ports::StoreResult};

use crate::Sql;

/// The readings of a clock by which a store decides what has expired: one reading deletes nothing, because it may be
/// wrong.
///
/// A deletion first records its own reading. It deletes only what had expired at an earlier reading, which was recorded
/// long enough ago. A reading that is later than the present time was wrong, and is forgotten. The statements are those
/// of SQLite and of PostgreSQL.
pub struct ClockReadings<T> {
    /// The table, with one column: `at`, in milliseconds since 1970.
    pub table: &'static str,
    /// The present time in milliseconds since 1970, or an expression for it.
    pub now: T,
    /// How long something stays after it was found expired.
    pub kept: Duration,
}

/// How long tokens of API keys and entries of their audit log stay: 30 days.
const KEYS_KEPT: Duration = Duration::from_hours(720);

impl ClockReadings<i64> {
    /// The readings of changes of API keys.
    pub(crate) fn of_keys(now: SystemTime) -> Self {
        Self {
            table: "api_key_readings",
            now: milliseconds(now),
            kept: KEYS_KEPT,
        }
    }

    /// Returns the reading by which this one may delete.
    pub(crate) fn read_proof(&self, sql: &mut dyn Sql) -> StoreResult<Option<i64>> {
        let mut rows = sql.rows(&format!("SELECT {}", self.proof()), &[])?;
        rows.pop()
            .map_or(Ok(None), |mut row| row.optional_integer())
    }
}

impl<T: Display> ClockReadings<T> {
    /// Returns the statements that record this reading. Of the readings in the last thirtieth of `kept`, only the
    /// earliest stays beside this one. Readings before the proof are deleted, which bounds the table.
    pub fn record(&self) -> [String; 3] {
        let Self { table, now, .. } = self;
        let kept = self.kept.as_millis();
        let distance = kept / 30;
        let proof = self.proof();
        [
            format!(
                "DELETE FROM {table}
                WHERE at > {now} OR at > (SELECT min(at) FROM {table} WHERE at > {now} - {distance})"
            ),
            format!("INSERT INTO {table} (at) VALUES ({now}) ON CONFLICT DO NOTHING"),
            format!("DELETE FROM {table} WHERE at < {proof}"),
        ]
    }

    /// Returns the query for the reading by which this one may delete. `NULL`: there is none.
    pub fn proof(&self) -> String {
        let Self { table, now, .. } = self;
        let kept = self.kept.as_millis();
        format!("(SELECT max(at) FROM {table} WHERE at <= {now} - {kept})")
    }
}
