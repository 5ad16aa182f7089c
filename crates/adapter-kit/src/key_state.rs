//! The statements on the row of the state of API keys, and on the rows of their marks. They are those of SQLite and of
//! PostgreSQL.

use crate::{ClockReadings, KeyCounts, KeyWrite, directory::MARKS_KEPT};

/// Selects the columns of a [`KeyState`](crate::KeyState). After a change by an older program, the rows are counted.
pub const SELECT_KEY_STATE: &str = "
    SELECT version, mark,
        CASE WHEN marked_version = version THEN keys ELSE (SELECT count(*) FROM api_keys) END AS keys,
        CASE WHEN marked_version = version THEN tokens ELSE (SELECT count(*) FROM api_key_tokens) END AS tokens
    FROM api_key_state";

impl KeyWrite {
    /// Returns the statements that end this change: they delete the tokens that expired long ago, and write the state
    /// with this version. `mark`: the literal of a new mark.
    pub fn end(&self, version: i64, mark: &str) -> String {
        let KeyCounts { keys, tokens } = self.growth;
        let readings = ClockReadings::of_keys(self.changed.at);
        let record = readings.record();
        let proof = readings.proof();
        let expired = format!("FROM api_key_tokens WHERE expires_at <= {proof}");
        format!(
            "{record}
            UPDATE api_key_state SET version = {version}, mark = {mark}, marked_version = {version},
                keys = CASE WHEN marked_version = version THEN keys + {keys} ELSE (SELECT count(*) FROM api_keys) END,
                tokens = CASE WHEN marked_version = version THEN tokens + {tokens}
                    ELSE (SELECT count(*) FROM api_key_tokens) END - (SELECT count(*) {expired});
            DELETE {expired};
            INSERT INTO api_key_marks (version, mark) VALUES ({version}, {mark})
                ON CONFLICT (version) DO UPDATE SET mark = excluded.mark;
            DELETE FROM api_key_marks WHERE version > {version} OR version <= {version} - {MARKS_KEPT};"
        )
    }
}
