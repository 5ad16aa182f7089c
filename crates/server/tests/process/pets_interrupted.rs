//! `animal-store pets`: interrupted imports and exports, and how they go on.

use std::{fs, io::Write};

use crate::{
    program::{Line, Running},
    store::{Store, names_of, odd_pets, pause},
};

/// Enough for several batches.
const PETS: usize = 20_000;
const KILLS: usize = 6;

/// Starts an import of a part of a file, from a pipe that stays open.
fn start(store: &Store, args: &[&str], part: &str) -> (Running, impl Write + use<>) {
    let (running, mut stdin) = store.program().args(&["pets", "import", "-", "--resume"]).args(args).start_with_stdin();
    // It can fail before everything is written.
    let _ = stdin.write_all(part.as_bytes());
    (running, stdin)
}

/// Splits a file about here.
fn split(file: &str, length: usize) -> (&str, &str) {
    file.split_at(file.floor_char_boundary(length))
}

/// Pseudo-random numbers below a limit.
fn randoms(seed: u64, limit: usize) -> impl Iterator<Item = usize> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).expect("31 bits") % limit
    })
}

#[test]
fn an_import_that_is_killed_again_and_again_adds_every_pet_once() {
    let file = odd_pets(PETS);
    let expected = names_of(&file);
    for (seed, args) in [(1, &[][..]), (2, &["--keep-ids"])] {
        for store in Store::each() {
            for (kill, length) in randoms(seed, file.len() - 100_000).take(KILLS).enumerate() {
                let (mut running, _stdin) = start(&store, args, split(&file, 100_000 + length).0);
                pause(20 * kill as u64);
                running.kill();
            }
            store.import(&file, &[&["--resume"], args].concat());

            assert_eq!(store.names(), expected);
        }
    }
}

#[test]
fn a_signal_ends_an_import_after_the_batch_and_says_how_to_go_on() {
    let file = odd_pets(PETS);
    for (signal, store) in ["INT", "TERM"].into_iter().zip(Store::each()) {
        let (first, rest) = split(&file, file.len() / 2);
        let (mut running, mut stdin) = start(&store, &["--keep-ids"], first);
        store.wait_for_pet();
        running.signal(signal);
        running.wait_for(|line| matches!(line, Line::Err(text) if text.contains("interrupted")).then_some(()));
        // The rest lets the reader go on, until it sees the signal.
        let _ = stdin.write_all(rest.as_bytes());
        drop(stdin);
        let exited = running.wait();

        assert_eq!(exited.code, Some(1), "{exited:?}");
        let hint = exited.stderr.last().expect("an error");
        assert!(hint.ends_with("pets import - --resume --keep-ids < FILE"), "{hint}");
        assert!(store.names().len() < PETS);
        store.import(&file, &["--keep-ids", "--resume"]);
        assert_eq!(store.names().len(), PETS);
    }
}

#[test]
fn a_second_signal_ends_an_import_that_waits_for_its_input() {
    let store = Store::sqlite();
    let (mut running, _stdin) = start(&store, &[], "{\"name\":");
    pause(300);
    running.signal("INT");
    running.wait_for(|line| matches!(line, Line::Err(text) if text.contains("interrupted")).then_some(()));
    pause(1100);
    running.signal("INT");
    let exited = running.wait();
    assert_eq!(exited.code, Some(1), "{exited:?}");
    assert!(exited.output().contains("a second signal"), "{exited:?}");
}

#[test]
fn an_unfinished_import_is_refused_without_resume() {
    let file = odd_pets(PETS);
    let store = Store::sqlite();
    let (mut running, _stdin) = start(&store, &[], split(&file, file.len() / 2).0);
    store.wait_for_pet();
    running.kill();

    let exited = store.program().args(&["pets", "import", "-"]).stdin(&file).run();
    assert_eq!(exited.code, Some(1), "{exited:?}");
    assert!(exited.output().contains("--resume"), "{exited:?}");

    // The first 64 KiB are the same, the lines after them are not.
    let (first, rest) = split(&file, 100_000);
    let changed = format!("{first}{}", rest.replace("pet ", "dog "));
    let exited = store.program().args(&["pets", "import", "-", "--resume"]).stdin(&changed).run();
    assert_eq!(exited.code, Some(1), "{exited:?}");
    assert!(exited.output().contains("lines have changed"), "{exited:?}");

    store.import(&file, &["--resume"]);
    assert_eq!(store.names().len(), PETS);
}

/// As if the process was killed after its last commit.
#[test]
fn a_complete_import_that_is_repeated_with_resume_adds_nothing() {
    let file = odd_pets(PETS);
    for store in Store::each() {
        store.import(&file, &["--resume"]);
        let exited = store.program().args(&["pets", "import", "-", "--resume"]).stdin(&file).run();
        assert_eq!(exited.code, Some(0), "{exited:?}");
        assert!(exited.output().contains("imported before: yes") && exited.output().contains("added: 0"), "{exited:?}");
        assert_eq!(store.names().len(), PETS);
    }
}

#[test]
fn an_interrupted_export_leaves_no_file_that_looks_complete() {
    let store = Store::sqlite();
    store.import(&odd_pets(PETS), &[]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pets.ndjson");
    for (milliseconds, signal) in [(5, "INT"), (20, "KILL"), (40, "INT"), (80, "KILL"), (160, "INT")] {
        let running = store.program().args(&["pets", "export", "--output", path.to_str().expect("UTF-8")]).start();
        pause(milliseconds);
        running.signal(signal);
        running.wait();
        let Ok(text) = fs::read_to_string(&path) else { continue };
        assert!(text.trim_end().lines().last().expect("lines").starts_with("{\"end\""), "a part of a file");
        fs::remove_file(&path).expect("it can be deleted");
    }
}
