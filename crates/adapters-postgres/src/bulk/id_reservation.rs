//! Keeps creates from assigning an id up to the greatest one of a batch.

use animal_store_app::ports::BulkStorageError;
use animal_store_domain::PetId;

use super::bulk_connection::BulkConnection;

const NEEDED: &str = "UPDATE on pets, and USAGE and UPDATE on the sequence pets_id_seq";

/// Advances the sequence to `greatest`, unless it is there. Afterwards, no create that began before is in flight.
///
/// A create locks the table before it takes an id from the sequence, and until its commit. This lock waits for those
/// in flight and holds up others, and other reservations, while the sequence is read and set: in one message, without
/// a round trip. Its commit does not wait for the disk, because that of the batch does.
pub(super) async fn reserve_ids(connection: &BulkConnection, greatest: PetId) -> Result<(), BulkStorageError> {
    let greatest = greatest.get();
    connection.begin().await?;
    let reserve = format!(
        "SET LOCAL synchronous_commit = off;
        LOCK TABLE pets IN SHARE ROW EXCLUSIVE MODE;
        SELECT setval('pets_id_seq', {greatest})
        WHERE coalesce(pg_sequence_last_value('pets_id_seq'), 0) < {greatest};
        COMMIT"
    );
    connection.execute(&reserve, NEEDED).await
}
