//! What runs in a process of its own.

use std::{env, path::PathBuf};

use tokio::runtime::Runtime;

use crate::{
    bulk,
    child::{PATH, SCENARIO},
    diagnosis, files, full_disk, keys, kills, outcomes,
};

#[test]
#[ignore = "other tests start it in a process of its own"]
fn scenario() {
    let (Some(scenario), Some(path)) = (env::var_os(SCENARIO), env::var_os(PATH)) else {
        return;
    };
    let path = PathBuf::from(path);
    let runtime = Runtime::new().expect("a runtime");
    match scenario.to_str().expect("UTF-8") {
        "adds" => runtime.block_on(kills::add_until_killed(&path)),
        "full disk" => runtime.block_on(outcomes::fill_the_disk(&path)),
        "revoke on a full disk" => runtime.block_on(full_disk::revoke_keys_on_a_full_disk(&path)),
        "doctor: not writable" => runtime.block_on(diagnosis::find_that_it_is_not_writable(&path)),
        "doctor: mounted alone" => {
            runtime.block_on(diagnosis::find_that_it_is_mounted_alone(&path));
        }
        "write error" => runtime.block_on(outcomes::add_until_a_write_fails(&path)),
        "no room" => files::expect_full_disk(&path),
        "not writable" => files::expect_not_writable(&path),
        "revoke" => runtime.block_on(keys::revoke_a_key(&path)),
        "no umask" => files::create(&path),
        "no temporary files" => runtime.block_on(bulk::add_many_pets(&path)),
        "locked" => files::expect_locked(&path),
        "partial backup" => bulk::create_partial_backup(&path),
        other => panic!("unknown: {other}"),
    }
}
