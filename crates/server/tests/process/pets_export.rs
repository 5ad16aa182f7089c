//! `animal-store pets export`: what is written, and what is left of a file that cannot be completed.

use std::fs;

use crate::{
    program::Program,
    store::{Store, odd_pets, pause},
};

#[test]
fn an_export_has_each_pet_as_the_service_sends_it() {
    for store in Store::each() {
        store.import(&odd_pets(2500));
        let pages = store.pages();
        let sent = pages.iter().map(|page| page.trim_start_matches('[').trim_end_matches(']'));
        let exported = store.succeed(&["pets", "export"]);
        assert_eq!(exported.lines().collect::<Vec<_>>().join(","), sent.collect::<Vec<_>>().join(","));
        assert_eq!(exported.lines().count(), 2500);
    }
}

#[test]
fn an_export_can_be_imported() {
    let [from, to] = Store::each();
    from.import(&odd_pets(100));
    to.import(&from.succeed(&["pets", "export"]));
    assert_eq!(to.names(), from.names());
}

#[test]
fn a_file_gets_its_name_when_it_is_complete_and_is_never_overwritten() {
    let store = Store::sqlite();
    store.import(&odd_pets(20_000));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pets.ndjson");
    let export = || store.program().args(&["pets", "export", path.to_str().expect("UTF-8")]);
    for (milliseconds, signal) in [(5, "INT"), (20, "KILL"), (80, "INT")] {
        let running = export().start();
        pause(milliseconds);
        running.signal(signal);
        let exited = running.wait();
        assert_eq!(path.exists(), exited.code == Some(0), "{exited:?}");
        let _ = fs::remove_file(&path);
    }
    assert_eq!(export().run().assert_success().stdout, ["pets: 20000"]);
    assert_eq!(fs::read_to_string(&path).expect("a file").lines().count(), 20_000);

    fs::write(&path, "precious").expect("a file");
    export().run().assert_refused(1, &["pets.ndjson exists"]);
    assert_eq!(fs::read_to_string(&path).expect("the file"), "precious");
}

#[test]
fn quiet_prints_only_errors() {
    let store = Store::sqlite();
    store.import(&odd_pets(1));
    assert_eq!(store.run(&["pets", "export", "--quiet", "pets.ndjson"]).assert_success().output(), "");
    let exited = store.run(&["pets", "export", "--quiet", "/nowhere/pets.ndjson"]);
    exited.assert_error(1, &[]).assert_refused(1, &[]);
}

#[test]
fn a_full_disk_is_an_error_and_a_closed_pipe_ends_the_export() {
    let store = Store::sqlite();
    store.import(&odd_pets(5000));
    let export = |script| store.program().args(&["pets", "export"]).run_by_shell(script).run();

    export(r#"exec "$@" >/dev/full"#).assert_refused(1, &["No space left on device"]);

    let exited = export(r#""$@" | head -n 2; exit ${PIPESTATUS[0]}"#);
    assert_eq!((exited.code, exited.stdout.len(), &exited.stderr), (Some(1), 2, &vec![]), "{exited:?}");
}

#[test]
fn pets_in_memory_are_not_exported_and_the_command_says_why() {
    for args in [&["pets", "export"][..], &["backup", "x"]] {
        Program::with_key().args(args).run().assert_refused(2, &["storage.backend is memory"]);
    }
}

#[test]
fn commands_that_read_change_no_byte_of_the_file_and_create_none() {
    let reads = [&["pets", "export"][..], &["keys", "list"], &["doctor"], &["backup", "copy.db"]];
    let keys = |store: &Store| store.program().env("ANIMAL_STORE_KEYS__BACKEND", "sqlite");
    let (missing, store) = (Store::sqlite(), Store::sqlite());
    store.import(&odd_pets(100));
    let file = || fs::read(store.folder().join("animal-store.db")).expect("a file");
    let before = file();
    for args in reads {
        let exited = keys(&missing).args(args).run();
        assert_eq!(exited.code, Some(1), "{args:?}: {exited:?}");
        assert!(exited.output().contains("does not exist") && !missing.has_file(), "{args:?}: {exited:?}");

        assert_eq!(keys(&store).args(args).run().code, Some(0), "{args:?}");
        assert!(file() == before, "{args:?}");
    }
}
