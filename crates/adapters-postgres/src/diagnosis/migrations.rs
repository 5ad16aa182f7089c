use animal_store_app::Finding;

use crate::{MigrationError, Migrations, SchemaMode};

const SUBJECT: &str = "postgres.migrations";

/// Returns the finding, and whether migrations are pending.
pub(super) async fn inspect(migrations: &Migrations, mode: SchemaMode) -> (Finding, bool) {
    let comparison = match migrations.comparison().await {
        Ok(comparison) => comparison,
        Err(error) => {
            let advice = match error {
                MigrationError::Contracted(_) => "run the release that made these changes, or a later one",
                _ => "check storage.postgres.migrate_url, and the permission SELECT ON __diesel_schema_migrations",
            };
            return (Finding::error(SUBJECT, error.to_string(), advice), false);
        }
    };
    if !comparison.pending.is_empty() {
        let found = format!("pending: {}", comparison.pending.join(", "));
        let finding = match mode {
            SchemaMode::Migrate => {
                Finding::warning(SUBJECT, found, "the next start runs them; so does `animal-store migrate`")
            }
            SchemaMode::Check => {
                Finding::error(SUBJECT, found + "; the service does not start", "run `animal-store migrate`")
            }
        };
        return (finding, true);
    }
    let finding = if comparison.newer.is_empty() {
        Finding::ok(SUBJECT, "none is pending")
    } else {
        let found = format!("a newer program has expanded the schema: {}", comparison.newer.join(", "));
        Finding::warning(SUBJECT, found, "upgrade this program when the rolling restart allows it")
    };
    (finding, false)
}
