//! `animal-store pets export`: what is written, and what is left of a file that cannot be completed.

use std::fs;

use tempfile::tempdir;

use crate::store::{Store, odd_pets};

#[test]
fn an_export_has_each_pet_as_the_service_sends_it_and_can_be_imported() {
    let [sqlite, postgres] = Store::each();
    sqlite.import(&odd_pets(1200).join("\n"));
    postgres.import(&sqlite.succeed(&["pets", "export"]).join("\n"));
    assert_eq!(postgres.pets(), sqlite.pets());
    for store in [sqlite, postgres] {
        let pages = store.pages();
        let sent: Vec<_> = pages
            .iter()
            .map(|page| page.trim_start_matches('[').trim_end_matches(']'))
            .collect();
        let exported = store.succeed(&["pets", "export"]);
        assert_eq!(exported.join(","), sent.join(","));
        assert_eq!(exported.len(), 1200);
    }
}

#[test]
fn a_file_gets_its_name_when_it_is_complete_and_is_never_overwritten() {
    let (store, folder) = (Store::sqlite(), tempdir().expect("a folder"));
    store.import(&odd_pets(3000).join("\n"));
    let path = folder.path().join("pets.ndjson");
    let export = || {
        store
            .program()
            .args(&["pets", "export", path.to_str().expect("UTF-8")])
    };
    // Beyond this size of a file, a write fails, or a signal kills the process.
    let failed = export()
        .run_by_shell(r#"ulimit -f 100; trap '' XFSZ; exec "$@""#)
        .run();
    failed.assert_refused(1, &["the export to ", "File too large"]);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    assert_eq!(
        export()
            .run_by_shell(r#"ulimit -f 100; exec "$@""#)
            .run()
            .code,
        None
    );
    assert!(!path.exists());

    let exited = export().run();
    let [pets, duration] = &exited.assert_success().stdout[..] else {
        panic!("{exited:?}")
    };
    assert!(
        pets == "pets: 3000" && duration.starts_with("duration: ") && duration.ends_with('s'),
        "{exited:?}"
    );
    let printed = store.program().args(&["pets", "export"]).run();
    assert!(
        printed.stdout.len() == 3000 && printed.stderr[0].contains("duration"),
        "{:?}",
        printed.stderr
    );
    assert_eq!(
        fs::read_to_string(&path).expect("a file").lines().count(),
        3000
    );
    fs::write(&path, "precious").expect("a file");
    export().run().assert_refused(1, &["pets.ndjson exists"]);
    assert_eq!(fs::read_to_string(&path).expect("the file"), "precious");
}

#[test]
fn a_full_disk_is_an_error_and_a_closed_pipe_ends_the_export() {
    let store = Store::sqlite();
    store.import(&odd_pets(3000).join("\n"));
    let export = || store.program().args(&["pets", "export"]);
    export()
        .run_by_shell(r#"exec "$@" >/dev/full"#)
        .run()
        .assert_refused(1, &["No space left on device"]);

    let exited = export()
        .run_by_shell(r#""$@" | head -n 2; exit ${PIPESTATUS[0]}"#)
        .run();
    assert_eq!(
        (exited.code, exited.stdout.len(), &exited.stderr),
        (Some(1), 2, &vec![]),
        "{exited:?}"
    );
}

#[test]
fn commands_that_read_change_no_byte_of_the_file_and_create_none() {
    let reads = [
        &["pets", "export"][..],
        &["keys", "list"],
        &["doctor"],
        &["backup", "copy.db"],
    ];
    let (missing, store) = (Store::sqlite(), Store::sqlite());
    store.import(&odd_pets(100).join("\n"));
    let Store::Sqlite(folder) = &store else {
        unreachable!("as made above")
    };
    let file = || fs::read(folder.path().join("animal-store.db")).expect("a file");
    let before = file();
    for args in reads {
        let exited = missing.with_own_keys().args(args).run();
        assert_eq!(exited.code, Some(1), "{args:?}: {exited:?}");
        assert!(
            exited.output().contains("does not exist") && !missing.has_file(),
            "{args:?}: {exited:?}"
        );

        assert_eq!(
            store.with_own_keys().args(args).run().code,
            Some(0),
            "{args:?}"
        );
        assert!(file() == before, "{args:?}");
    }
}
