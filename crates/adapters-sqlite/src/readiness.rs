use animal_store_app::ports::{Cause, Readiness, StoreFailure};
use async_trait::async_trait;
use diesel::connection::SimpleConnection;
use tokio::time::timeout;

use crate::{
    creates::Creates,
    session::{Session, begin},
    values::number,
};

/// Ready if a pet can be read, a transaction of a create can begin, and the file is in place and believed.
#[async_trait]
impl Readiness for Creates {
    async fn check(&self) -> Result<(), Cause> {
        let wait = self.timeout;
        let session = Session::new(&self.file);
        let check = session.run_on_connection(move |file, connection| {
            number(
                connection,
                "SELECT count(*) FROM (SELECT * FROM pets LIMIT 1)",
            )?;
            begin(connection, wait)?;
            connection.batch_execute("ROLLBACK")?;
            file.check()
        });
        let checked = timeout(wait, check)
            .await
            .map_err(|_| StoreFailure::Timeout)?;
        checked.map_err(|error| Cause::of(&error))
    }
}
