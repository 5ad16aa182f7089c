//! The name of a connection in `pg_stat_activity`.

use std::{fs, process};

/// Name of a connection that does not name its instance.
pub(crate) const APPLICATION_NAME: &str = "animal-store";

/// PostgreSQL cuts longer names off.
const MAX_LEN: usize = 63;

/// Returns [`APPLICATION_NAME`] with the name of this host and the id of this process.
pub(crate) fn instance_name() -> String {
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
        assert!(instance_name().split(' ').eq(["animal-store", &*this_host(), &*pid]), "{}", instance_name());
    }

    fn this_host() -> String {
        let output = process::Command::new("uname").arg("-n").output().expect("uname runs");
        String::from_utf8(output.stdout).expect("ASCII").trim().to_owned()
    }
}
