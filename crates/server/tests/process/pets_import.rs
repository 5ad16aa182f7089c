//! `animal-store pets import`: which lines are added, and what a repetition adds.

use std::{fs, io::Write};

use animal_store_test_servers::wait_until;
use diesel::connection::SimpleConnection;

use crate::{
    program::{Exited, Program},
    store::{Store, odd_pets, without_ids},
    unread_output::full_pipe,
};

const BAD_LINES: &str = r#"{"name":"Rex","categoryId":1}
{"name":" ","categoryId":1}
not JSON
{"name":"Tom","categoryId":"x","status":"lost"}
{"name":"Kim","categoryId":2,"status":"sold"}
"#;

/// Imports standard input under this name.
fn import(store: &Store, name: &str) -> Program {
    store
        .program()
        .args(&["pets", "import", "-", "--create", "--name", name])
}

/// Returns the value of a line of the result.
#[track_caller]
fn result<'a>(exited: &'a Exited, name: &str) -> &'a str {
    let line = exited
        .stdout
        .iter()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    line.unwrap_or_else(|| panic!("no {name}: {exited:?}"))
}

#[track_caller]
fn assert_counts(exited: &Exited, added: usize, present: usize, refused: usize) {
    let counts =
        ["added", "already present", "refused"].map(|name| result(exited, name).to_owned());
    assert_eq!(
        counts,
        [added, present, refused].map(|count| count.to_string()),
        "{exited:?}"
    );
    assert_eq!(exited.code, Some(i32::from(refused > 0)), "{exited:?}");
}

#[test]
fn a_repeated_import_adds_nothing() {
    let lines = odd_pets(1200);
    let text = lines.join("\n");
    for store in Store::each() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pets.ndjson");
        fs::write(&path, &text).expect("a file");
        let run = || store.run(&["pets", "import", path.to_str().expect("UTF-8"), "--create"]);
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
    let (input, mut writer) = std::io::pipe().expect("a pipe");
    let mut write = |lines: &[String]| {
        let text = lines.join("\n") + "\n";
        writer.write_all(text.as_bytes()).expect("written");
    };
    let mut running = import(&store, "x").standard_input(input).start();
    write(&lines[..10]);
    wait_until(|| store.run(&["pets", "export"]).stdout.len() == 10);
    let mut connection = store.connection();
    let lock = connection.batch_execute("BEGIN IMMEDIATE");
    lock.expect("a lock");
    write(&lines[10..]);
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
    let [blank, syntax, two, error] = &exited.stderr[..] else {
        panic!("{exited:?}")
    };
    assert!(
        blank.starts_with("line 2: ") && blank.contains("name"),
        "{blank}"
    );
    assert!(syntax.starts_with("line 3: "), "{syntax}");
    assert!(
        two.starts_with("line 4: ") && two.contains("categoryId") && two.contains("status"),
        "{two}"
    );
    assert_eq!(error, "animal-store: refused lines: 3");

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
    let (input, mut writer) = std::io::pipe().expect("a pipe");
    let running = import(&store, "x").standard_input(input).start();
    writer
        .write_all((odd_pets(10).join("\n") + "\n").as_bytes())
        .expect("written");
    wait_until(|| !store.run(&["pets", "export"]).stdout.is_empty());
    running.signal("INT");
    running.wait().assert_refused(
        1,
        &[
            "run the same command again",
            "pets import - --create --name x",
        ],
    );
}

#[test]
fn a_signal_ends_an_import_whose_report_of_refused_lines_is_not_read() {
    let store = Store::sqlite();
    let (_reader, stderr) = full_pipe();
    let program = import(&store, "x").stdin(&"not JSON\n".repeat(100));
    let running = program.stderr(stderr).start();
    // The first argument of a system call is the descriptor: a thread writes to standard error.
    let tasks = || {
        fs::read_dir(format!("/proc/{}/task", running.pid()))
            .expect("it runs")
            .map(|task| task.expect("a thread"))
    };
    let system_call =
        |task: fs::DirEntry| fs::read_to_string(task.path().join("syscall")).unwrap_or_default();
    wait_until(|| tasks().any(|task| system_call(task).split(' ').nth(1) == Some("0x2")));
    assert!(tasks().count() < 50);
    running.signal("INT");
    assert_eq!(running.wait().code, Some(1));
}

#[test]
fn an_import_that_cannot_begin_is_refused() {
    let store = Store::sqlite();
    let named = ["pets", "import", "-", "--name", "x"];
    store
        .run(&named)
        .assert_refused(1, &["animal-store.db: the file does not exist", "--create"]);
    for (file, code, reason) in [
        ("missing.ndjson", 1, "missing.ndjson cannot be read"),
        ("/", 1, "/ cannot be read"),
        ("-", 2, "--name"),
        ("/proc/self/fd/0", 2, "--name"),
    ] {
        let (input, _writer) = std::io::pipe().expect("a pipe");
        let import = store
            .program()
            .args(&["pets", "import", file, "--create"])
            .standard_input(input);
        import.run().assert_refused(code, &[reason]);
    }
    let (input, mut writer) = std::io::pipe().expect("a pipe");
    writer
        .write_all("\u{feff}[\n{\"name\":\"Rex\",\"categoryId\":1}\n]\n".as_bytes())
        .expect("written");
    import(&store, "x")
        .standard_input(input)
        .run()
        .assert_refused(1, &["a JSON array", "a pet per line", "jq -c '.[]'"]);
    assert!(!store.has_file());
    for args in [&named[..], &["pets", "export"], &["backup", "x"]] {
        Program::with_key()
            .args(args)
            .run()
            .assert_refused(2, &["storage.backend is memory"]);
    }
}
