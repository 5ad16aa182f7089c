//! The name of a connection in `pg_stat_activity`.

use std::{fs, process};

/// Name of a connection that does not name its instance.
const APPLICATION_NAME: &str = "animal-store";

/// PostgreSQL cuts longer names off.
const MAX_LEN: usize = 63;

/// Returns the name of a connection: the program, this host and the id of this process. Behind a transaction pooler,
/// only the program: a pooler sets the name again for each transaction that follows one of another instance.
pub(crate) fn application_name(transaction_pooling: bool) -> String {
    if transaction_pooling { APPLICATION_NAME.to_owned() } else { instance_name() }
}

fn instance_name() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name_of_process(&host, process::id())
}

/// PostgreSQL writes each byte that is not ASCII as a question mark.
fn name_of_process(host: &str, pid: u32) -> String {
    let pid = format!(" {pid}");
    let room = MAX_LEN - APPLICATION_NAME.len() - 1 - pid.len();
    let host: String = host.chars().filter(char::is_ascii_graphic).take(room).collect();
    format!("{APPLICATION_NAME} {host}{pid}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_has_the_name_of_its_host_and_process() {
        assert_eq!(name_of_process("store-1.example\n", 4711), "animal-store store-1.example 4711");
        assert_eq!(name_of_process(" böse\0", 1), "animal-store bse 1");
        assert_eq!(name_of_process(&"h".repeat(64), u32::MAX).len(), MAX_LEN);
        let pid = process::id().to_string();
        let name = application_name(false);
        assert!(name.split(' ').eq(["animal-store", &*this_host(), &*pid]), "{name}");
        assert_eq!(application_name(true), "animal-store");
    }

    fn this_host() -> String {
        let output = process::Command::new("uname").arg("-n").output().expect("uname runs");
        String::from_utf8(output.stdout).expect("ASCII").trim().to_owned()
    }
}
