//! Creates the Unix socket of the API. Its path appears with its mode and its owner, in one step: the socket is bound
//! to a temporary name in the same folder, and then renamed. A socket that another process has open is never replaced,
//! and neither is another kind of file.

use std::{
    fs::{self, Permissions},
    io::{self, ErrorKind},
    os::unix::{
        fs::{FileTypeExt, PermissionsExt, chown},
        net::{UnixDatagram, UnixListener},
    },
    path::Path,
};

use animal_store_adapters_http::HttpListener;

use crate::config::{ListenAddress, UnixSocketConfig, UnixSocketOwner};

/// Binds the path. Replaces a socket that no process has open.
///
/// # Errors
/// `AddrInUse` if another process has the socket open. Another kind of file is an error, and is left as it is.
pub(super) fn bind(path: &Path, config: &UnixSocketConfig) -> io::Result<HttpListener> {
    match fs::symlink_metadata(path) {
        Ok(file) if file.file_type().is_socket() => check_unused(path)?,
        Ok(_) => return Err(io::Error::new(ErrorKind::AlreadyExists, "the path exists and is not a socket")),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut temporary = tempfile::Builder::new();
    temporary.prefix(".").rand_bytes(ListenAddress::TEMPORARY_NAME_BYTES - 1);
    let (socket, temporary) = temporary.make_in(folder, |path| UnixListener::bind(path))?.into_parts();
    let UnixSocketOwner { user, group } = config.owner;
    chown(&temporary, user, group).map_err(|error| {
        io::Error::new(error.kind(), format!("the owner cannot be set to http.unix.owner: {error}"))
    })?;
    // After the owner, whose change can reset bits of the mode.
    fs::set_permissions(&temporary, Permissions::from_mode(config.mode))?;
    temporary.persist(path)?;
    HttpListener::unix(socket, path.to_owned())
}

fn check_unused(path: &Path) -> io::Result<()> {
    // The type is wrong on purpose: the system checks it after it has found the process, which gets no connection.
    match UnixDatagram::unbound()?.connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(()),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(error),
        Ok(()) | Err(_) => Err(ErrorKind::AddrInUse.into()),
    }
}
