//! `animal-store pets export`: what is written, and what is left of a file that cannot be completed.

use std::os::unix::fs::PermissionsExt;

use crate::prelude::*;

#[test]
fn an_export_has_each_pet_as_the_service_sends_it_and_can_be_imported() {
    let [sqlite, postgres] = Store::each();
    sqlite.import(&odd_pets(1200));
    postgres.import(&sqlite.succeed("pets export"));
    assert_eq!(postgres.pets(), sqlite.pets());
    for store in [sqlite, postgres] {
        let exported = store.succeed("pets export");
        assert_eq!(exported.len(), 1200);
        let pages = store.pages().join(",").replace("],[", ",");
        assert_eq!(format!("[{}]", exported.join(",")), pages);
        let mut running = store.program().start();
        let client = running.client();
        let sold = client.get("/v1/pets?status=sold&limit=1").json();
        let found = client.get(&format!("/v1/pets/{}", sold[0]["id"]));
        assert_eq!(json!([found.assert_status(200).json()]), sold);
    }
}

#[test]
fn a_file_gets_its_name_when_it_is_complete_and_is_never_overwritten() {
    let store = Store::sqlite();
    let folder = new_folder();
    store.import(&odd_pets(3000));
    let path = folder.path().join("pets.ndjson");
    let export = || store.program().args("pets export").arg(&path);
    let failed = export().run_by_shell(r#"ulimit -f 100; exec "$@""#).run();
    failed.assert_refused(1, &["the export to ", "File too large"]);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);

    let exited = export().run();
    exited.assert_success().assert_has("duration: ");
    assert_eq!(exited.stdout[0], "pets: 3000");
    let printed = store.run("pets export");
    assert_eq!(printed.stdout.len(), 3000);
    assert!(printed.stderr[0].contains("duration"), "{printed:?}");
    let exported = fs::read_to_string(&path).expect("a file");
    assert_eq!(exported.lines().count(), 3000);
    let mode = path.metadata().expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    fs::write(&path, "precious").expect("a file");
    export().run().assert_refused(1, &["pets.ndjson exists"]);
    assert_eq!(fs::read_to_string(&path).expect("the file"), "precious");
}

#[test]
fn a_signal_ends_an_export_or_a_backup_which_leaves_no_file() {
    // The connection to this PostgreSQL waits for an answer.
    let (_postgres, address) = listen();
    let url = format!("postgres://a:b@{address}/c?sslmode=disable");
    for command in ["pets export", "backup"] {
        for signal in ["INT", "TERM", "HUP"] {
            let folder = new_folder();
            let files = || fs::read_dir(folder.path()).expect("a folder").count();
            let program = Program::with_postgres(&url).args(command);
            let running = program.arg(folder.path().join("store")).start();
            wait_until(|| files() == 1);
            running.signal(signal);
            running.wait().assert_refused(1, &["interrupted"]);
            assert_eq!(files(), 0, "{command}, {signal}");
        }
    }
}

#[test]
fn a_full_disk_is_an_error_and_a_closed_pipe_ends_the_export() {
    let store = Store::sqlite();
    store.import(&odd_pets(3000));
    let export = |script| {
        let export = store.program().args("pets export");
        export.run_by_shell(script).run()
    };
    let full = export(r#"exec "$@" >/dev/full"#);
    full.assert_refused(1, &["No space left on device"]);

    let exited = export(r#""$@" | head -n 2; exit ${PIPESTATUS[0]}"#);
    exited.assert_code(1);
    assert!(exited.stderr.is_empty(), "{exited:?}");
    assert_eq!(exited.stdout.len(), 2, "{exited:?}");
}

#[test]
fn commands_that_read_change_no_byte_of_the_file_and_create_none() {
    let missing = Store::sqlite();
    let store = Store::sqlite();
    store.import(&odd_pets(100));
    let file = || fs::read(store.path()).expect("a file");
    let before = file();
    for line in ["pets export", "keys list", "doctor", "backup copy.db"] {
        let exited = missing.with_own_keys().args(line).run();
        exited.assert_code(1).assert_has("does not exist");
        assert!(!Path::new(&missing.path()).exists(), "{line}");

        store.with_own_keys().args(line).succeed();
        assert!(file() == before, "{line}");
    }
}
