use std::sync::Arc;

use animal_store_app::ports::{Cause, Readiness, StoreFailure};
use async_trait::async_trait;
use diesel::connection::SimpleConnection;
use tokio::time::timeout;

use crate::{
    creates::Creates,
    session::{Session, begin},
    values::number,
};

/// Ready if a pet can be read, a transaction of a create can begin, and the file is in place and believed. Probes take
/// turns, and a thread that waits for the disk keeps its turn, so that probes occupy one thread.
#[async_trait]
impl Readiness for Creates {
    async fn check(&self) -> Result<(), Cause> {
        let wait = self.timeout;
        let session = Session::new(&self.file);
        let probe = async {
            let turn = Arc::clone(&self.probe).lock_owned().await;
            let probe = session.run_on_connection(move |file, connection| {
                let _turn = turn;
                number(
                    connection,
                    "SELECT count(*) FROM (SELECT * FROM pets LIMIT 1)",
                )?;
                begin(connection, wait)?;
                connection.batch_execute("ROLLBACK")?;
                file.check()
            });
            probe.await
        };
        let checked = timeout(wait, probe)
            .await
            .map_err(|_| StoreFailure::Timeout)?;
        checked.map_err(|error| Cause::of(&error))
    }
}
