//! `animal-store pets import`: which lines are added, and what a repetition adds.

use std::io::{PipeReader, PipeWriter, pipe};

use diesel::connection::SimpleConnection;
use tempfile::NamedTempFile;

use crate::{prelude::*, unread_output::full_pipe};

const BAD_LINES: &str = r#"{"name":"Rex","categoryId":1}
{"name":" ","categoryId":1}
not JSON
{"name":"Tom","categoryId":"x","status":"lost"}
{"name":"Kim","categoryId":2,"status":"sold"}
"#;

/// Imports standard input under this name.
fn import(store: &Store, name: &str) -> Program {
    let import = store.program().args("pets import - --create --name");
    import.arg(name)
}

/// Standard input that ends when the writer is dropped, after these lines.
fn open_input(lines: &str) -> (PipeReader, PipeWriter) {
    let (input, mut writer) = pipe().expect("a pipe");
    writeln!(writer, "{lines}").expect("written");
    (input, writer)
}

/// Returns the value of a line of the result.
#[track_caller]
fn result<'a>(exited: &'a Exited, name: &str) -> &'a str {
    let mut lines = exited.stdout.iter();
    let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    line.unwrap_or_else(|| panic!("no {name}: {exited:?}"))
}

#[track_caller]
fn assert_counts(exited: &Exited, added: usize, present: usize, refused: usize) {
    let counts = ["added", "already present", "refused"].map(|name| result(exited, name));
    let expected = [added, present, refused].map(|count| count.to_string());
    assert_eq!(counts, expected, "{exited:?}");
    exited.assert_code(i32::from(refused > 0));
}

#[test]
fn a_repeated_import_adds_nothing() {
    let lines = odd_pets(1200);
    let text = lines.join("\n");
    let folder = new_folder();
    let path = folder.path().join("pets.ndjson");
    fs::write(&path, &text).expect("a file");
    for store in Store::each() {
        let run = || {
            store
                .program()
                .args("pets import --create")
                .arg(&path)
                .run()
        };
        let first = run();
        assert_counts(&first, 1200, 0, 0);
        assert_eq!(store.pets(), without_ids(&lines));

        assert_counts(&run(), 0, 1200, 0);
        let import = |name| import(&store, name).stdin(&text).run();
        assert_counts(&import(result(&first, "name")), 0, 1200, 0);
        assert_counts(&import("another"), 1200, 0, 0);
    }
}

#[test]
fn an_import_waits_while_the_file_is_locked() {
    let store = Store::sqlite();
    let lines = odd_pets(20);
    let (input, mut writer) = open_input(&lines[..10].join("\n"));
    let mut running = import(&store, "x").standard_input(input).start();
    wait_until(|| store.run("pets export").stdout.len() == 10);
    let mut connection = store.connection();
    let lock = connection.batch_execute("BEGIN IMMEDIATE");
    lock.expect("a lock");
    writeln!(writer, "{}", lines[10..].join("\n")).expect("written");
    running.wait_for_event("the import waits for the store");
    drop(connection);
    drop(writer);
    assert_counts(&running.wait(), 20, 0, 0);
    assert_eq!(store.pets().len(), 20);
}

#[test]
fn refused_lines_are_reported_and_a_corrected_file_adds_what_is_missing() {
    let store = Store::sqlite();
    let exited = import(&store, "x").stdin(BAD_LINES).run();
    assert_counts(&exited, 2, 0, 3);
    let expected = [
        "line 2: name must not be blank",
        "line 3: the line must be valid JSON: error at column 2",
        "line 4: categoryId must be a 64-bit integer; status must be one of available, pending, sold",
        "animal-store: refused lines: 3",
    ];
    assert_eq!(exited.stderr, expected);

    let corrected = BAD_LINES
        .replace("\"x\",\"status\":\"lost\"", "3")
        .replace("not JSON\n", "")
        .replace("\" \"", "\"Pia\"");
    assert_counts(&import(&store, "x").stdin(&corrected).run(), 2, 2, 0);
    assert_eq!(store.pets().len(), 4);
}

#[test]
fn a_signal_ends_an_import_that_waits_for_its_input_and_says_how_to_go_on() {
    let store = Store::sqlite();
    let (input, _writer) = open_input(&odd_pets(10).join("\n"));
    let running = import(&store, "x").standard_input(input).start();
    wait_until(|| !store.run("pets export").stdout.is_empty());
    running.signal("INT");
    let again = "pets import - --create --name x";
    let exited = running.wait();
    exited.assert_refused(1, &["run the same command again", again]);
}

#[test]
fn an_import_goes_on_if_sighup_is_ignored() {
    let store = Store::sqlite();
    let (input, mut writer) = open_input(r#"{"name":"Rex","categoryId":1}"#);
    let program = import(&store, "x").run_by_shell(r#"trap '' HUP; exec "$@""#);
    let running = program.standard_input(input).start();
    wait_until(|| store.run("pets export").stdout.len() == 1);
    running.signal("HUP");
    writeln!(writer, r#"{{"name":"Tom","categoryId":1}}"#).expect("written");
    wait_until(|| store.run("pets export").stdout.len() == 2);
    drop(writer);
    assert_counts(&running.wait(), 2, 0, 0);
}

#[test]
fn a_signal_ends_an_import_during_the_digest_of_its_file() {
    let store = Store::sqlite();
    let file = NamedTempFile::new().expect("a file");
    // It is sparse, and reading it takes minutes.
    file.as_file().set_len(1 << 33).expect("it is longer");
    let line = format!("pets import {} --create", file.path().display());
    let running = store.program().args(&line).start();
    let reads = || {
        let io = running.proc("io");
        let bytes = io.lines().find_map(|line| line.strip_prefix("rchar: "));
        bytes.expect("a number").parse::<u64>().expect("a number")
    };
    wait_until(|| reads() > 1 << 24);
    running.signal("INT");
    running.wait().assert_refused(1, &["interrupted"]);
}

#[test]
fn a_signal_ends_an_import_whose_report_of_refused_lines_is_not_read() {
    let store = Store::sqlite();
    let (_reader, stderr) = full_pipe();
    let program = import(&store, "x").stdin(&"not JSON\n".repeat(100));
    let running = program.stderr(stderr).start();
    let tasks = || {
        let tasks = fs::read_dir(format!("/proc/{}/task", running.pid()));
        tasks.expect("it runs").map(|task| task.expect("a thread"))
    };
    // The first argument of a system call is the descriptor: a thread writes to standard error.
    let writes = |task: fs::DirEntry| {
        let call = fs::read_to_string(task.path().join("syscall")).unwrap_or_default();
        call.split(' ').nth(1) == Some("0x2")
    };
    wait_until(|| tasks().any(writes));
    assert!(tasks().count() < 50);
    running.signal("INT");
    running.wait().assert_code(1);
}

#[test]
fn an_import_that_cannot_begin_is_refused() {
    let store = Store::sqlite();
    let missing = "animal-store.db: the file does not exist";
    for (line, code, reason) in [
        ("- --name x", 1, missing),
        ("- --name x", 1, "--create"),
        (
            "missing.ndjson --create",
            1,
            "missing.ndjson cannot be read",
        ),
        ("/ --create", 1, "/ cannot be read"),
        ("- --create", 2, "--name"),
        ("/proc/self/fd/0 --create", 2, "--name"),
        ("/dev/null --create", 2, "--name"),
    ] {
        let (input, _writer) = open_input("{}");
        let import = store.program().args("pets import").args(line);
        let refused = import.standard_input(input).run();
        refused.assert_refused(code, &[reason]);
    }
    for name in [" ", "\u{1b}[31mred", "two\nlines"] {
        let refused = import(&store, name).run();
        refused.assert_refused(2, &["--name", "1 to 64 characters, not only white space"]);
    }
    let array = "\u{feff}[\n{\"name\":\"Rex\",\"categoryId\":1}\n]";
    let (input, _writer) = open_input(array);
    let refused = import(&store, "x").standard_input(input).run();
    refused.assert_refused(1, &["a JSON array", "a pet per line", "jq -c '.[]'"]);
    assert!(!Path::new(&store.path()).exists());
    for line in ["pets import - --name x", "pets export", "backup x"] {
        let refused = Program::with_key().args(line).run();
        refused.assert_refused(2, &["storage.backend is memory"]);
    }
}
