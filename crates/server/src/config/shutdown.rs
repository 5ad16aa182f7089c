use std::time::Duration;

use super::{
    key::{Key, keys},
    values::{Values, duration},
};

keys! {
    TIMEOUT: new("shutdown.timeout", "30s",
        "Timeout for the requests in flight at a shutdown. After it, they are cut off and the exit code is 1.");
}

pub(super) fn read_timeout(values: &mut Values) -> Duration {
    values.read(&TIMEOUT, duration(Duration::from_millis(1)..=Duration::from_hours(1)))
}
