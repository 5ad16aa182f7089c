use std::{
    fs::{create_dir, write},
    thread,
};

use nix::{sys::stat::Mode, unistd::mkfifo};
use tempfile::tempdir;

use super::*;

#[test]
fn a_file_of_a_mebibyte_is_read_and_a_larger_or_endless_one_is_refused() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("file");
    let limit = 1 << 20;
    let content = vec![b'a'; limit + 1];
    write(&path, &content[..limit]).unwrap();
    for read in [read, read_regular] {
        assert!(read(&path).unwrap() == content[..limit]);
    }
    write(&path, content).unwrap();
    for refused in [
        read(&path),
        read_regular(&path),
        read(Path::new("/dev/zero")),
    ] {
        let reason = refused.unwrap_err().to_string();
        assert_eq!(reason, "it is larger than 1 MiB");
    }
}

#[test]
fn a_byte_order_mark_is_left_out_of_the_beginning_alone() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("file");
    for (content, expected) in [
        ("\u{feff}a\n", "a\n"),
        ("\u{feff}", ""),
        ("a\u{feff}", "a\u{feff}"),
    ] {
        write(&path, content).unwrap();
        assert_eq!(read_text(&path).unwrap(), expected);
        assert_eq!(read_regular(&path).unwrap(), expected.as_bytes());
    }
}

#[test]
fn a_text_that_is_not_utf_8_is_refused_without_a_byte_of_it() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("file");
    write(&path, b"secret\xff").unwrap();
    let error = read_text(&path).unwrap_err();
    assert_eq!(error.to_string(), "it is not UTF-8");
    assert!(!format!("{error:?}").contains("secret"));
}

#[test]
fn a_regular_file_is_read_without_a_wait_for_the_writer_of_a_pipe() {
    let folder = tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    mkfifo(&pipe, Mode::S_IRWXU).unwrap();
    let inner = folder.path().join("folder");
    create_dir(&inner).unwrap();
    for path in [&*pipe, &inner, Path::new("/dev/zero")] {
        let reason = read_regular(path).unwrap_err().to_string();
        assert_eq!(reason, "it is not a regular file");
    }
}

#[test]
fn a_pipe_is_read_to_the_end_of_a_writer_that_comes_later() {
    let folder = tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    mkfifo(&pipe, Mode::S_IRWXU).unwrap();
    thread::scope(|scope| {
        let reader = scope.spawn(|| read(&pipe));
        write(&pipe, "first").unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), b"first");
    });
}

#[test]
fn a_pipe_without_a_writer_is_an_error_in_time() {
    let folder = tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    mkfifo(&pipe, Mode::S_IRWXU).unwrap();
    let reason = read_waiting(&pipe, 1).unwrap_err().to_string();
    assert_eq!(reason, "nothing was written to it in time");
}
