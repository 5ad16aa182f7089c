//! Removal of what a key leaves in Redis when it ends. Tokens expire; entries of the index and uses do not.

use redis::cmd;

use super::index::{Delete, Index};
use crate::{
    connection::Connection,
    keyspace::{self, Keyspace},
    use_record,
};

/// Number of entries of the index that a change examines.
const EXAMINED: usize = 20;

impl Keyspace {
    /// Removes keys that have expired, of some that Redis selects.
    pub(super) async fn remove_expired_keys(
        &self,
        connection: &mut Connection,
    ) -> keyspace::Result<()> {
        let mut query = cmd("HRANDFIELD");
        query.arg(&self.index).arg(EXAMINED).arg("WITHVALUES");
        let entries: Vec<(String, String)> = query.query_async(connection).await?;
        let mut index = Index::from_iter(entries);
        for key in self.read_keys(connection, &index).await? {
            index.remove(key.key.id.as_str());
        }
        for (id, entry) in &index {
            let deletion = self.delete(id, entry, Delete::IfExpired);
            deletion.exec_async(connection).await?;
            use_record::delete(self, connection, id).await?;
        }
        Ok(())
    }
}
