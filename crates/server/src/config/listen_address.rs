//! The address of the API, `http.listen`: an IP address with a port, or the path of a Unix socket.
//! A path that is accepted can be bound: it and the temporary name, which it replaces in its folder, are short enough
//! for the system.

use std::{
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use super::values::address;

/// Before the path of a Unix socket.
const UNIX: &str = "unix:";

/// Maximum number of bytes of a path that the system binds.
const MAX_PATH_BYTES: usize = 107;

/// Maximum number of bytes of the folder of a path: the temporary name follows it and a slash.
const MAX_FOLDER_BYTES: usize = MAX_PATH_BYTES - 1 - ListenAddress::TEMPORARY_NAME_BYTES;

/// Address of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenAddress {
    /// An IP address with a port.
    Tcp(SocketAddr),
    /// Path of a Unix socket.
    Unix(PathBuf),
}

impl ListenAddress {
    /// Number of bytes of the name to which a Unix socket is bound before it is renamed.
    pub(crate) const TEMPORARY_NAME_BYTES: usize = 5;

    /// Whether other machines cannot connect.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().is_loopback(),
            Self::Unix(_) => true,
        }
    }

    /// The address, unless it is the path of a Unix socket.
    pub const fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(formatter),
            Self::Unix(path) => write!(formatter, "{UNIX}{}", path.display()),
        }
    }
}

pub(super) fn listen_address(text: &str) -> Result<ListenAddress, String> {
    let Some(path) = text.strip_prefix(UNIX) else {
        return address(text).map(ListenAddress::Tcp).map_err(|expected| format!("{expected}, or {UNIX} with a path"));
    };
    let path = Path::new(path);
    let folder = path.parent().unwrap_or(path);
    if path.as_os_str().len() > MAX_PATH_BYTES || folder.as_os_str().len() > MAX_FOLDER_BYTES {
        return Err(format!(
            "{UNIX} with a path of at most {MAX_PATH_BYTES} bytes in a folder of at most {MAX_FOLDER_BYTES} bytes"
        ));
    }
    if path.is_absolute() && path.file_name().is_some() && !path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        Ok(ListenAddress::Unix(path.to_owned()))
    } else {
        Err(format!("{UNIX} with the absolute path of a socket, such as {UNIX}/run/animal-store/http.sock"))
    }
}
