//! The API on a Unix socket of the process.

use std::{
    fs::{self, Permissions},
    io::{Read, Write},
    os::unix::{
        fs::{MetadataExt, PermissionsExt, symlink},
        net::{UnixListener, UnixStream},
    },
    path::PathBuf,
};

use tempfile::TempDir;

use crate::{
    program::{Exited, Program, Running, TOKEN},
    socket_activation::get_by_unix_socket,
};

/// A folder with the path of a socket, which does not exist yet.
fn socket_path() -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("http.sock");
    (folder, path)
}

fn with_path(path: &std::path::Path) -> Program {
    Program::with_key().args(&["--listen", &format!("unix:{}", path.display())])
}

#[track_caller]
fn listening(mut running: Running) -> Running {
    running.wait_for_event("listening");
    running
}

#[test]
fn the_socket_appears_with_its_mode_and_is_removed_at_the_end() {
    for (mode, expected) in [(None, 0o660), (Some("0600"), 0o600), (Some("0666"), 0o666)] {
        let (folder, path) = socket_path();
        let program =
            mode.map_or_else(|| with_path(&path), |mode| with_path(&path).env("ANIMAL_STORE_HTTP__UNIX__MODE", mode));
        let mut running = program.start();

        let event = running.wait_for_event("listening");
        assert_eq!(event["address"], format!("unix:{}", path.display()), "{event}");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, expected);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary name is left");
        assert!(get_by_unix_socket(&path).unwrap().starts_with("HTTP/1.1 200 "));
        assert_eq!(running.terminate().code, Some(0));
        assert!(!path.exists());
    }
}

#[test]
fn the_longest_path_that_is_accepted_can_be_bound() {
    let folder = TempDir::new().unwrap();
    let padding = 101 - folder.path().as_os_str().len() - 1;
    let deepest = folder.path().join("a".repeat(padding));
    fs::create_dir(&deepest).unwrap();
    for name in ["s", "http5"] {
        let path = deepest.join(name);
        let running = listening(with_path(&path).start());
        assert!(get_by_unix_socket(&path).unwrap().starts_with("HTTP/1.1 200 "));
        assert_eq!(running.terminate().code, Some(0));
    }
    let too_deep = folder.path().join("a".repeat(padding + 1)).join("s");
    assert_eq!(with_path(&too_deep).run().code, Some(2), "the configuration is invalid");
}

#[test]
fn the_group_of_the_socket_can_be_set() {
    let (_folder, path) = socket_path();
    let group = nix::unistd::Group::from_gid(nix::unistd::getgid()).unwrap().unwrap();
    let owner = format!(":{}", group.name);
    let running = listening(with_path(&path).env("ANIMAL_STORE_HTTP__UNIX__OWNER", &owner).start());
    assert_eq!(fs::metadata(&path).unwrap().gid(), group.gid.as_raw());
    drop(running);
}

#[test]
fn a_socket_that_no_process_has_open_is_replaced() {
    let (_folder, path) = socket_path();
    drop(UnixListener::bind(&path).unwrap());
    let running = listening(with_path(&path).start());
    assert!(get_by_unix_socket(&path).unwrap().starts_with("HTTP/1.1 200 "));
    drop(running);
    // It was killed.
    let _running = listening(with_path(&path).start());
    assert!(get_by_unix_socket(&path).unwrap().starts_with("HTTP/1.1 200 "));
}

#[track_caller]
fn assert_refused(exited: &Exited, path: &std::path::Path, reason: &str) {
    assert_eq!((exited.code, exited.stderr.len()), (Some(1), 1), "{exited:?}");
    let expected = format!("animal-store: cannot listen on unix:{} (http.listen): ", path.display());
    assert!(exited.stderr[0].starts_with(&expected) && exited.stderr[0].contains(reason), "{exited:?}");
}

#[test]
fn a_socket_of_another_process_is_an_error() {
    let (_folder, path) = socket_path();
    let running = listening(with_path(&path).start());
    assert_refused(&with_path(&path).run(), &path, "already in use");
    assert!(get_by_unix_socket(&path).unwrap().starts_with("HTTP/1.1 200 "));
    drop(running);
}

#[test]
fn another_kind_of_file_is_an_error_and_is_left_as_it_is() {
    let (folder, path) = socket_path();
    fs::write(&path, "notes").unwrap();
    assert_refused(&with_path(&path).run(), &path, "is not a socket");
    assert_eq!(fs::read_to_string(&path).unwrap(), "notes");

    let link = folder.path().join("link");
    symlink(&path, &link).unwrap();
    assert_refused(&with_path(&link).run(), &link, "is not a socket");
    let missing = folder.path().join("missing/http.sock");
    assert_refused(&with_path(&missing).run(), &missing, "No such file or directory");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_path_that_is_no_longer_ours_is_not_removed_at_the_end() {
    let (_folder, path) = socket_path();
    let running = listening(with_path(&path).start());
    fs::remove_file(&path).unwrap();
    let other = UnixListener::bind(&path).unwrap();
    assert_eq!(running.terminate().code, Some(0));
    assert!(UnixStream::connect(&path).is_ok());
    drop(other);
}

#[test]
fn a_connection_that_waits_is_served_before_the_end() {
    let (_folder, path) = socket_path();
    let running = listening(with_path(&path).start());
    let results: Vec<_> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..16)
            .map(|_| {
                scope.spawn(|| {
                    let mut responses = 0;
                    loop {
                        match get_by_unix_socket(&path) {
                            Ok(response) if response.starts_with("HTTP/1.1 200 ") => responses += 1,
                            // The path is removed, or the connection came after that.
                            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(responses),
                            other => return Err(format!("{other:?}")),
                        }
                    }
                })
            })
            .collect();
        assert_eq!(running.terminate().code, Some(0));
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    assert!(results.iter().all(Result::is_ok), "{results:?}");
}

#[test]
fn the_quickstart_prints_commands_for_the_socket() {
    let (_folder, path) = socket_path();
    fs::set_permissions(path.parent().unwrap(), Permissions::from_mode(0o755)).unwrap();
    let mut running = Program::with_file().args(&["--listen", &format!("unix:{}", path.display())]).start();
    let [add, list] = crate::quickstart::commands(&mut running);
    assert!(add.contains(&format!("--unix-socket {}", path.display())), "{add}");
    crate::quickstart::assert_both_work(&add, &list);
    let exited = running.terminate();
    assert!(exited.stderr[0].ends_with(&format!("listens on unix:{}.", path.display())), "{exited:?}");
    assert!(!exited.output().contains("browser") && !exited.output().contains(&format!("Bearer {TOKEN}")));
}

#[test]
fn the_log_has_the_client_that_a_trusted_proxy_on_the_socket_reports() {
    for (proxies, expected) in [("", "unix"), ("127.0.0.1", "unix"), ("unix", "203.0.113.9")] {
        let (_folder, path) = socket_path();
        let program = with_path(&path).env("ANIMAL_STORE_HTTP__TRUSTED_PROXIES", proxies);
        let mut running = listening(program.start());
        let request = |head: &str| {
            let mut stream = UnixStream::connect(&path).unwrap();
            stream.write_all(head.as_bytes()).unwrap();
            stream.read_to_end(&mut Vec::new()).unwrap();
        };
        request("GET /v1/pets HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.9\r\nConnection: close\r\n\r\n");
        assert_eq!(running.wait_for_event("request")["client"], expected, "{proxies:?}");
        request("GET /v1/pets HTTP/1.1\r\nHost: a b\r\n\r\n");
        assert_eq!(running.wait_for_event("request refused")["client"], "unix", "{proxies:?}");
    }
}

#[test]
fn failed_authentications_of_a_socket_count_as_those_of_one_address() {
    for (proxies, others) in [("", 429), ("unix", 401)] {
        let (_folder, path) = socket_path();
        let program = with_path(&path)
            .env("ANIMAL_STORE_HTTP__TRUSTED_PROXIES", proxies)
            .env("ANIMAL_STORE_HTTP__AUTH_FAILURES__PER_MINUTE", "1");
        let _running = listening(program.start());
        let status = |client: &str| {
            let mut stream = UnixStream::connect(&path).unwrap();
            let head = "GET /v1/pets HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Forwarded-For:";
            stream.write_all(format!("{head} {client}\r\n\r\n").as_bytes()).unwrap();
            let mut response = String::new();
            stream.read_to_string(&mut response).unwrap();
            response[9..12].parse::<u16>().unwrap()
        };
        let statuses = [status("203.0.113.1"), status("203.0.113.1"), status("203.0.113.2")];
        assert_eq!(statuses, [401, 429, others], "{proxies:?}");
    }
}
