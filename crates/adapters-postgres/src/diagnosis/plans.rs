use std::iter::repeat_n;

use animal_store_app::Finding;
use tokio_postgres::error::{Severity, SqlState};

use super::inspection::{Inspected, Inspection};
use crate::{
    PostgresSettings, creates,
    error::{ConnectionError, describe},
    planned_statement::PlannedStatement,
    reads,
};

const SUBJECT: &str = "postgres.plans";

/// Explains every statement of reads and creates, under the settings of their connections.
pub(super) async fn inspect(inspection: &Inspection, settings: &PostgresSettings) -> Inspected {
    let statements: Vec<_> = reads::statements().into_iter().chain(creates::statements(settings)).collect();
    let mut bad_plans = Vec::new();
    for statement in &statements {
        let problem = match explain(inspection, settings, statement).await {
            Ok(plan) => excluded_line(statement, &plan),
            Err(ConnectionError::Postgres(error)) if is_about_the_schema(&error) => Some(describe(&error)),
            Err(error) => return Err(error),
        };
        bad_plans.extend(problem.map(|problem| format!("{}: {problem}", statement.name)));
    }
    Ok(vec![if bad_plans.is_empty() {
        Finding::ok(SUBJECT, format!("{} statements use their indexes", statements.len()))
    } else {
        let found = format!("not as intended: {}", bad_plans.join("; "));
        let advice = "compare the indexes of pets and idempotency_keys (\\d in psql) with those of the migrations; \
                      create missing ones, and REINDEX invalid ones";
        Finding::error(SUBJECT, found, advice)
    }])
}

/// Returns the lines of the plan that PostgreSQL makes without the values of the parameters.
async fn explain(
    inspection: &Inspection,
    settings: &PostgresSettings,
    PlannedStatement { sql, parameters, .. }: &PlannedStatement,
) -> Result<Vec<String>, ConnectionError> {
    let types = parameters.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let values = repeat_n("NULL", parameters.len()).collect::<Vec<_>>().join(", ");
    let settings = settings.set_statements("SET LOCAL");
    let explain = format!(
        "BEGIN READ ONLY; {settings}; PREPARE doctor ({types}) AS {sql};
        EXPLAIN (COSTS OFF) EXECUTE doctor ({values}); DEALLOCATE doctor; ROLLBACK"
    );
    let explained = inspection.lines(&explain).await;
    if explained.is_err() {
        // Behind a pooler, another client gets the connection. This fails if nothing was prepared.
        let _ = inspection.lines("ROLLBACK; DEALLOCATE doctor").await;
    }
    explained
}

fn excluded_line(statement: &PlannedStatement, plan: &[String]) -> Option<String> {
    let is_excluded = |line: &&String| statement.excluded.iter().any(|text| line.contains(text));
    plan.iter().find(is_excluded).map(|line| line.trim_start_matches([' ', '-', '>']).to_owned())
}

/// Returns whether PostgreSQL cannot plan the statement. Missing tables and permissions are findings of their own.
fn is_about_the_schema(error: &tokio_postgres::Error) -> bool {
    let others = [SqlState::UNDEFINED_TABLE, SqlState::INSUFFICIENT_PRIVILEGE, SqlState::QUERY_CANCELED];
    error
        .as_db_error()
        .is_some_and(|error| error.parsed_severity() == Some(Severity::Error) && !others.contains(error.code()))
}
