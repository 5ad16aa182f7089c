use animal_store_app::Finding;

use super::inspection::{Inspected, Inspection};

const SETTINGS: &str = "
    SELECT current_setting('server_version'), current_setting('server_version_num')::integer,
        pg_is_in_recovery(), current_setting('transaction_read_only'),
        current_setting('fsync'), current_setting('synchronous_commit')";

/// The first version with `plan_cache_mode`.
const REQUIRED_VERSION: i32 = 12_00_00;
/// The version of the tests.
const TESTED_VERSION: i32 = 15_00_00;

pub(super) async fn inspect(inspection: &Inspection) -> Inspected {
    let row = inspection.row(SETTINGS).await?;
    let (version, number): (&str, i32) = (row.try_get(0)?, row.try_get(1)?);
    let (standby, read_only): (bool, &str) = (row.try_get(2)?, row.try_get(3)?);
    Ok(vec![
        version_finding(version, number),
        writes_finding(standby, read_only == "on"),
        fsync_finding(row.try_get(4)?),
        synchronous_commit_finding(row.try_get(5)?),
    ])
}

fn version_finding(version: &str, number: i32) -> Finding {
    let subject = "postgres.version";
    match number {
        TESTED_VERSION.. => Finding::ok(subject, version),
        REQUIRED_VERSION.. => Finding::warning(subject, version, "upgrade: the service is tested with 15"),
        _ => Finding::error(subject, version, "upgrade to 15 or later: the service requires 12"),
    }
}

fn writes_finding(standby: bool, read_only: bool) -> Finding {
    let subject = "postgres.writes";
    let found = match (standby, read_only) {
        (true, _) => "the server is a standby: creates get 503",
        (false, true) => "transactions are read-only: creates get 503",
        (false, false) => return Finding::ok(subject, "accepted"),
    };
    let advice = "connect to the primary, for example with target_session_attrs=read-write in the URL; \
                  default_transaction_read_only must be off";
    Finding::error(subject, found, advice)
}

fn fsync_finding(value: &str) -> Finding {
    let subject = "postgres.fsync";
    if value == "off" {
        let found = "off: a crash of the machine can destroy the database";
        return Finding::error(subject, found, "set fsync = on in postgresql.conf");
    }
    Finding::ok(subject, value)
}

fn synchronous_commit_finding(value: &str) -> Finding {
    let subject = "postgres.synchronous_commit";
    if value == "off" {
        let found = "off: a crash can lose pets that were confirmed with 201";
        return Finding::warning(subject, found, "set synchronous_commit = on for this user and database");
    }
    Finding::ok(subject, value)
}

#[cfg(test)]
mod tests {
    use animal_store_app::Verdict::{self, Error, Ok, Warning};

    use super::*;

    #[test]
    fn a_version_before_15_is_a_warning_and_one_before_12_an_error() {
        let verdicts = [(18_00_01, Ok), (15_00_00, Ok), (14_00_09, Warning), (12_00_00, Warning), (11_00_22, Error)];
        for (number, verdict) in verdicts {
            assert_eq!(version_finding("x", number).verdict, verdict, "{number}");
        }
    }

    #[test]
    fn a_server_that_refuses_writes_is_an_error() {
        let verdict = |standby, read_only| -> Verdict { writes_finding(standby, read_only).verdict };
        assert_eq!([verdict(true, true), verdict(false, true), verdict(false, false)], [Error, Error, Ok]);
    }

    #[test]
    fn a_setting_that_can_lose_pets_is_found() {
        assert_eq!(["on", "off"].map(|value| fsync_finding(value).verdict), [Ok, Error]);
        let values = ["on", "local", "off"];
        assert_eq!(values.map(|value| synchronous_commit_finding(value).verdict), [Ok, Ok, Warning]);
    }
}
