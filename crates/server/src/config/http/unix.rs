//! The permissions of the Unix socket of the API, `http.unix`.
//! Names of users and groups are resolved when the configuration is read: `check-config` reports a name that this
//! machine does not have, and the start does not fail after the socket was bound.

use nix::unistd::{Group, User};

use super::super::{
    key::{Key, keys},
    values::Values,
};

keys! {
    MODE: new("http.unix.mode", "0660",
        "Mode of the Unix socket in octal. A process that may write to the socket can connect.");
    OWNER: new("http.unix.owner", "",
        "Owner of the Unix socket: `user`, `user:group` or `:group`. Only root can give a socket to another user. \
         Empty: unchanged.");
}

/// Who can connect to the Unix socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnixSocketConfig {
    pub(crate) mode: u32,
    pub(crate) owner: UnixSocketOwner,
}

/// Ids to set. `None`: unchanged.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnixSocketOwner {
    pub(crate) user: Option<u32>,
    pub(crate) group: Option<u32>,
}

impl UnixSocketConfig {
    pub(super) fn read(values: &mut Values) -> Self {
        Self { mode: values.read(&MODE, mode), owner: values.read(&OWNER, owner) }
    }
}

fn mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| "an octal number from 0 to 0777, such as 0660".to_owned())
}

fn owner(text: &str) -> Result<UnixSocketOwner, String> {
    let (user, group) = text.split_once(':').unwrap_or((text, ""));
    let unknown = |kind: &str| format!("user, user:group or :group, with a {kind} that this machine has");
    let user = match user {
        "" => None,
        name => Some(User::from_name(name).ok().flatten().ok_or_else(|| unknown("user"))?.uid.as_raw()),
    };
    let group = match group {
        "" => None,
        name => Some(Group::from_name(name).ok().flatten().ok_or_else(|| unknown("group"))?.gid.as_raw()),
    };
    Ok(UnixSocketOwner { user, group })
}
