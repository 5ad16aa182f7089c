//! `animal-store pets import`: which lines are added, and what a repetition adds.

use std::{fs, io::Write};

use animal_store_test_servers::HttpClient;

use crate::{
    program::{Exited, Program, TOKEN},
    store::{Store, names_of, odd_pets, pause},
    unread_output::full_pipe,
};

const BAD_LINES: &str = r#"{"name":"Rex","categoryId":1}
{"name":" ","categoryId":1}
not JSON
{"name":"Tom","categoryId":"x","status":"lost"}
{"name":"Kim","categoryId":2,"status":"sold"}
"#;

/// Imports standard input under this name.
#[track_caller]
fn import(store: &Store, text: &str, name: &str, args: &[&str]) -> Exited {
    store.program().args(&["pets", "import", "-", "--create", "--name", name]).args(args).stdin(text).run()
}

/// Returns the value of a line of the result.
#[track_caller]
fn result<'a>(exited: &'a Exited, name: &str) -> &'a str {
    let line = exited.stdout.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    line.unwrap_or_else(|| panic!("no {name}: {exited:?}"))
}

#[track_caller]
fn assert_counts(exited: &Exited, added: usize, present: usize, refused: usize) {
    let counts = ["added", "already present", "refused"].map(|name| result(exited, name).to_owned());
    assert_eq!(counts, [added, present, refused].map(|count| count.to_string()), "{exited:?}");
    assert_eq!(exited.code, Some(i32::from(refused > 0)), "{exited:?}");
}

#[test]
fn a_repeated_import_adds_nothing() {
    let text = odd_pets(2500);
    for store in Store::each() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pets.ndjson");
        fs::write(&path, &text).expect("a file");
        let run = || store.run(&["pets", "import", path.to_str().expect("UTF-8"), "--create"]);
        let first = run();
        assert_counts(&first, 2500, 0, 0);
        assert_eq!(store.names(), names_of(&text));

        assert_counts(&run(), 0, 2500, 0);
        let name = result(&first, "name");
        assert_counts(&import(&store, &text, name, &[]), 0, 2500, 0);
        assert_counts(&import(&store, &text, "another", &[]), 2500, 0, 0);
        let quiet = import(&store, &text, "another", &["--quiet"]);
        assert_eq!((quiet.code, &quiet.stdout), (Some(0), &vec![]), "{quiet:?}");
    }
}

#[test]
fn a_corrected_file_adds_what_is_missing() {
    for store in Store::each() {
        let exited = import(&store, BAD_LINES, "x", &[]);
        assert_counts(&exited, 2, 0, 3);
        // PostgreSQL's adapter logs as well.
        let errors: Vec<_> = exited.stderr.iter().filter(|line| !line.starts_with('{')).collect();
        let [blank, syntax, two, error] = errors[..] else { panic!("{exited:?}") };
        assert!(blank.starts_with("line 2: ") && blank.contains("name"), "{blank}");
        assert!(syntax.starts_with("line 3: "), "{syntax}");
        assert!(two.starts_with("line 4: ") && two.contains("categoryId") && two.contains("status"), "{two}");
        assert_eq!(*error, "animal-store: refused lines: 3");

        let corrected = "{\"name\":\"Kim\",\"categoryId\":2,\"status\":\"sold\"}\n{\"name\":\"Tom\",\"categoryId\":3}\n\
                         {\"name\":\"Rex\",\"categoryId\":1}\n";
        assert_counts(&import(&store, corrected, "x", &[]), 1, 2, 0);
        assert_eq!(store.names(), ["Kim", "Rex", "Tom"]);
    }
}

#[test]
fn refused_lines_go_to_a_file_that_does_not_exist() {
    let store = Store::sqlite();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rejected");
    let args = ["--rejected", path.to_str().expect("UTF-8")];
    let exited = import(&store, BAD_LINES, "x", &args);
    assert_counts(&exited, 2, 0, 3);
    assert_eq!(exited.stderr.len(), 1, "{exited:?}");
    let rejected = fs::read_to_string(&path).expect("a file");
    let numbers: Vec<_> = rejected.lines().filter_map(|line| line.split_once(": ")).map(|(number, _)| number).collect();
    assert_eq!(numbers, ["line 2", "line 3", "line 4"]);

    assert_eq!(import(&store, BAD_LINES, "y", &args).code, Some(1));
    assert_eq!(store.names().len(), 2, "nothing is added if the file exists");
}

#[test]
fn a_signal_ends_an_import_that_waits_for_its_input_and_says_how_to_go_on() {
    let store = Store::sqlite();
    let program = store.program().args(&["pets", "import", "-", "--create", "--name", "x"]);
    let (running, mut stdin) = program.start_with_stdin();
    stdin.write_all(odd_pets(10).as_bytes()).expect("written");
    store.wait_for_pet();
    running.signal("INT");
    running.wait().assert_refused(1, &["run the same command again", "pets import - --create --name x"]);
}

#[test]
fn a_signal_ends_an_import_whose_report_of_refused_lines_is_not_read() {
    let store = Store::sqlite();
    let (_reader, stderr) = full_pipe();
    let program = store.program().args(&["pets", "import", "-", "--create", "--name", "x"]).stderr(stderr);
    let (running, mut stdin) = program.start_with_stdin();
    stdin.write_all(odd_pets(1).as_bytes()).expect("written");
    store.wait_for_pet();
    stdin.write_all("not JSON\n".repeat(100).as_bytes()).expect("written");
    // Until it waits for the report.
    pause(300);
    let threads = fs::read_dir(format!("/proc/{}/task", running.pid())).expect("it runs").count();
    running.signal("INT");
    assert_eq!(running.wait().code, Some(1));
    assert!(threads < 50, "{threads} threads");
}

#[test]
fn a_dry_run_reports_bad_lines_and_adds_nothing() {
    for store in Store::each() {
        let exited = import(&store, BAD_LINES, "x", &["--dry-run"]);
        assert_eq!((exited.code, exited.stderr.len()), (Some(1), 4), "{exited:?}");
        assert_eq!((result(&exited, "valid"), result(&exited, "refused")), ("2", "3"));
        assert!(!store.has_file());
        assert_eq!(store.names(), Vec::<String>::new());
    }
}

#[test]
fn without_create_a_missing_store_is_named_and_not_made() {
    let store = Store::sqlite();
    let exited = store.program().args(&["pets", "import", "-", "--name", "x"]).stdin(&odd_pets(1)).run();
    exited.assert_refused(1, &["animal-store.db: the file does not exist", "--create"]);
    assert!(!store.has_file());
}

#[test]
fn an_import_that_cannot_begin_is_refused() {
    let store = Store::sqlite();
    for (file, code, reason) in [
        ("missing.ndjson", 1, "missing.ndjson cannot be read"),
        ("/", 1, "/ cannot be read"),
        ("-", 2, "--name"),
        ("/proc/self/fd/0", 2, "--name"),
    ] {
        store.run(&["pets", "import", file, "--create"]).assert_refused(code, &[reason]);
        assert!(!store.has_file());
    }
    let memory = Program::with_key().args(&["pets", "import", "-", "--name", "x"]).run();
    memory.assert_refused(2, &["storage.backend is memory"]);
}

#[test]
fn an_imported_pet_is_served_with_its_members() {
    let store = Store::sqlite();
    store.import("{\"id\":9,\"name\":\"Rex\",\"categoryId\":7,\"status\":\"sold\"}");
    let mut running = store.program().start();
    let pet = HttpClient::new(running.address()).with_token(TOKEN).get("/v1/pets/1");
    assert_eq!(pet.assert_status(200).text(), r#"{"id":1,"name":"Rex","categoryId":7,"status":"sold"}"#);
}
