//! `animal-store pets import`: which lines are added, and what a repetition adds.

use std::{fs, io::Write};

use animal_store_test_servers::HttpClient;

use crate::{
    pets::{create_request, list_all},
    program::{Exited, Program, TOKEN},
    store::{Store, names_of, odd_pets, pause},
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
        let mut names = names_of(&text);
        let mut added = store.names();
        names.sort_unstable();
        added.sort_unstable();
        assert_eq!(added, names);

        assert_counts(&run(), 0, 2500, 0);
        let name = result(&first, "name");
        assert_counts(&import(&store, &text, name, &[]), 0, 2500, 0);
        assert_counts(&import(&store, &text, "another", &[]), 2500, 0, 0);
    }
}

#[test]
fn equal_lines_are_pets_of_their_own() {
    let text = "{\"name\":\"Rex\",\"categoryId\":1}\n".repeat(5);
    for store in Store::each() {
        assert_counts(&import(&store, &text, "x", &[]), 5, 0, 0);
        assert_counts(&import(&store, &text.repeat(2), "x", &[]), 5, 5, 0);
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
        let mut names = store.names();
        names.sort_unstable();
        assert_eq!(names, ["Kim", "Rex", "Tom"]);
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
fn an_import_that_is_killed_again_and_again_adds_every_pet_once() {
    let text = odd_pets(20_000);
    for store in Store::each() {
        for kill in 1..=5 {
            let program = store.program().args(&["pets", "import", "-", "--create", "--name", "x"]);
            let (mut running, mut stdin) = program.start_with_stdin();
            // It is killed while it waits for more, or before it has read everything.
            let _ = stdin.write_all(&text.as_bytes()[..text.len() * kill / 6]);
            pause(30 * kill as u64);
            running.kill();
        }
        let last = import(&store, &text, "x", &["--quiet"]);
        assert_eq!((last.code, &last.stdout), (Some(0), &vec![]), "{last:?}");
        let (mut names, mut added) = (names_of(&text), store.names());
        names.sort_unstable();
        added.sort_unstable();
        assert_eq!(added, names);
    }
}

#[test]
fn a_signal_ends_an_import_that_waits_for_its_input_and_says_how_to_go_on() {
    let store = Store::sqlite();
    let program = store.program().args(&["pets", "import", "-", "--create", "--name", "x"]);
    let (running, mut stdin) = program.start_with_stdin();
    stdin.write_all(odd_pets(10).as_bytes()).expect("written");
    store.wait_for_pet();
    running.signal("INT");
    let exited = running.wait();
    assert_eq!(exited.code, Some(1), "{exited:?}");
    assert!(exited.output().contains("run the same command again"), "{exited:?}");
    assert!(exited.output().ends_with("pets import - --create --name x"), "{exited:?}");
}

#[test]
fn a_running_server_finds_imported_pets_and_goes_on_creating() {
    for store in Store::each() {
        let mut running = store.program().start();
        let address = running.address();
        create_request(address, TOKEN, "first").send().assert_status(201);
        assert_counts(&import(&store, &odd_pets(3000), "x", &[]), 3000, 0, 0);
        create_request(address, TOKEN, "last").send().assert_status(201);
        let pets = list_all(address, TOKEN);
        assert_eq!((pets.len(), &pets[3001]["name"]), (3002, &"last".into()));
    }
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
    assert_eq!(exited.code, Some(1), "{exited:?}");
    assert!(exited.output().contains("animal-store.db: the file does not exist"), "{exited:?}");
    assert!(exited.output().contains("--create"), "{exited:?}");
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
        let exited = store.run(&["pets", "import", file, "--create"]);
        assert_eq!(exited.code, Some(code), "{exited:?}");
        assert!(exited.output().contains(reason), "{exited:?}");
        assert!(!store.has_file());
    }
    let memory = Program::with_key().args(&["pets", "import", "-", "--name", "x"]).run();
    assert_eq!(memory.code, Some(2), "{memory:?}");
    assert!(memory.output().contains("storage.backend is memory"), "{memory:?}");
}

#[test]
fn an_imported_pet_is_served_with_its_members() {
    let store = Store::sqlite();
    assert_counts(
        &import(&store, "{\"id\":9,\"name\":\"Rex\",\"categoryId\":7,\"status\":\"sold\"}", "x", &[]),
        1,
        0,
        0,
    );
    let mut running = store.program().start();
    let pet = HttpClient::new(running.address()).with_token(TOKEN).get("/v1/pets/1");
    assert_eq!(pet.assert_status(200).text(), r#"{"id":1,"name":"Rex","categoryId":7,"status":"sold"}"#);
}
