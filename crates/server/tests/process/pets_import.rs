//! `animal-store pets import`: which lines are imported, and how the others are reported.

use animal_store_test_servers::HttpClient;

use crate::{
    pets::create_request,
    program::{Exited, TOKEN},
    store::{Store, lines, odd_pets},
};

const BAD_LINES: &str = r#"{"name":"Rex","categoryId":1}
{"name":" ","categoryId":1}
not JSON
{"name":"Tom","categoryId":"x","status":"lost"}
{"name":"Kim","categoryId":2,"status":"sold"}
"#;

#[track_caller]
fn import(store: &Store, text: &str, args: &[&str]) -> Exited {
    store.program().args(&["pets", "import", "-"]).args(args).stdin(text).run()
}

#[test]
fn pets_move_between_the_backends_with_their_ids() {
    for (format, [from, to]) in [("ndjson", Store::each()), ("csv", Store::each())] {
        from.import(&odd_pets(2500), &["--keep-ids"]);
        let text = from.succeed(&["pets", "export", "--format", format]);

        to.import(&text, &["--keep-ids", "--format", format]);
        let again = to.succeed(&["pets", "export", "--format", format]);
        let back = Store::sqlite();
        back.import(&again, &["--keep-ids", "--format", format]);

        let pages = from.pages();
        assert_eq!(pages.len(), 25);
        assert_eq!(to.pages(), pages, "{format}");
        assert_eq!(back.pages(), pages, "{format}");
        // Except for the time of the export in the first line.
        assert_eq!(text.split_once('\n').expect("lines").1, again.split_once('\n').expect("lines").1, "{format}");
    }
}

#[test]
fn without_keep_ids_the_pets_get_new_ids() {
    for store in Store::each() {
        for round in 1..=2 {
            store.import(&odd_pets(120), &[]);
            assert_eq!(store.names().len(), round * 120);
        }
        let names = store.names();
        assert_eq!(names[..120], names[120..]);
    }
}

#[test]
fn bad_lines_are_reported_and_the_others_imported() {
    for store in Store::each() {
        let exited = import(&store, BAD_LINES, &[]);

        assert_eq!(exited.code, Some(1), "{exited:?}");
        assert_eq!(exited.stdout, ["added: 2", "already there: 0", "refused: 3"]);
        let [blank, syntax, two, result] = &exited.stderr[..] else { panic!("{exited:?}") };
        assert!(blank.contains("line 2: ") && blank.contains("name"), "{blank}");
        assert!(syntax.contains("line 3: "), "{syntax}");
        assert!(two.contains("line 4: ") && two.contains("categoryId") && two.contains("status"), "{two}");
        assert!(result.contains("3 lines were refused"), "{result}");
        assert_eq!(store.names(), ["Rex", "Kim"]);
    }
}

#[test]
fn only_the_first_hundred_bad_lines_are_reported_one_by_one() {
    let store = Store::sqlite();
    let exited = import(&store, &"bad\n".repeat(250), &[]);

    assert_eq!((exited.code, exited.stderr.len()), (Some(1), 102), "{exited:?}");
    assert!(exited.stderr[99].contains("line 100: ") && exited.stderr[100].contains("150"), "{exited:?}");
}

#[test]
fn strict_stops_at_the_first_bad_line_and_keeps_the_lines_before_it() {
    let store = Store::sqlite();
    let exited = import(&store, BAD_LINES, &["--strict"]);

    assert_eq!(exited.code, Some(1), "{exited:?}");
    assert!(exited.output().contains("line 2"), "{exited:?}");
    assert_eq!(store.names(), ["Rex"]);
}

#[test]
fn neither_a_dry_run_nor_a_missing_input_creates_a_storage() {
    let store = Store::sqlite();
    assert_eq!(import(&store, BAD_LINES, &["--dry-run"]).code, Some(1));
    assert_eq!(store.run(&["pets", "import", "missing.ndjson"]).code, Some(1));
    assert!(!store.has_file());
}

#[test]
fn a_dry_run_reports_bad_lines_and_imports_nothing() {
    for store in Store::each() {
        let exited = import(&store, BAD_LINES, &["--dry-run"]);
        assert_eq!((exited.code, exited.stderr.len()), (Some(1), 4), "{exited:?}");
        assert_eq!(exited.stdout, ["valid: 2", "refused: 3"]);
        assert_eq!(store.names(), Vec::<String>::new());
    }
}

#[test]
fn with_keep_ids_a_second_import_adds_nothing_and_a_taken_id_is_refused() {
    for store in Store::each() {
        let file = "{\"id\":7,\"name\":\"Rex\",\"categoryId\":1}\n";
        store.import(file, &["--keep-ids"]);

        let again = import(&store, file, &["--keep-ids"]);
        assert_eq!(
            (again.code, lines(&again.stdout)),
            (Some(0), "added: 0\nalready there: 1\nrefused: 0\n".to_owned())
        );

        let other = import(&store, &file.replace("Rex", "Tom"), &["--keep-ids"]);
        assert_eq!(other.code, Some(1), "{other:?}");
        assert!(other.stderr[0].contains("line 1: ") && other.stderr[0].contains("id 7"), "{other:?}");
        assert_eq!(store.names(), ["Rex"]);
    }
}

#[test]
fn the_next_create_has_a_greater_id_also_beside_a_running_server() {
    for store in Store::each() {
        let mut running = store.program().start();
        let address = running.address();
        assert_eq!(create_request(address, TOKEN, "first").send().json()["id"], 1);

        store.import(&odd_pets(200).replace("{\"categoryId\":-500,\"createdAt\"", "{\"categoryId\":-500,\"x\""), &[]);
        store.import("{\"id\":5000,\"name\":\"far\",\"categoryId\":1}\n", &["--keep-ids"]);

        let id = create_request(address, TOKEN, "next").send().json()["id"].as_i64();
        assert!(id > Some(5000), "{id:?}");
        let far = HttpClient::new(address).with_token(TOKEN).get("/v1/pets/5000");
        assert_eq!(far.assert_status(200).json()["name"], "far");
    }
}

#[test]
fn a_file_without_its_end_or_with_another_digest_is_an_error_after_its_lines() {
    let from = Store::sqlite();
    from.import(&odd_pets(3), &["--keep-ids"]);
    let text = from.succeed(&["pets", "export"]);
    let cut = text.rsplit_once("{\"end\"").expect("an end").0;
    let changed = text.replacen("Rex", "Max", 1);
    for (file, reason) in [(cut, "incomplete"), (&changed, "digest")] {
        let to = Store::sqlite();
        let exited = import(&to, file, &["--keep-ids"]);
        assert_eq!(exited.code, Some(1), "{exited:?}");
        assert!(exited.output().contains(reason), "{reason}: {exited:?}");
        assert_eq!(to.names().len(), 3);
    }
}

#[test]
fn a_file_that_cannot_be_read_is_an_error() {
    let store = Store::sqlite();
    for (file, reason) in [("missing.ndjson", "missing.ndjson"), ("/", "directory")] {
        let exited = store.run(&["pets", "import", file]);
        assert_eq!(exited.code, Some(1), "{exited:?}");
        assert!(exited.output().contains(reason), "{exited:?}");
    }
}
