//! Where the configuration comes from, and what is said about a wrong one.

use crate::program::{Ended, Program};

/// The value that `check-config` prints for a key.
#[track_caller]
fn value<'a>(ended: &'a Ended, key: &str) -> &'a str {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mut values = ended.stdout.iter().filter_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
    values.next().unwrap_or_else(|| panic!("no {key}: {ended:?}"))
}

#[track_caller]
fn assert_refused(ended: &Ended, problems: &[&str]) {
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert_eq!(ended.stdout, Vec::<String>::new());
    let stderr = ended.stderr.join("\n");
    for problem in problems {
        assert!(stderr.contains(problem), "{problem}: {stderr}");
    }
}

#[test]
fn a_default_yields_to_a_file_a_file_to_the_environment_and_the_environment_to_a_flag() {
    let file = "[http]\nworkers = 3\nmax_in_flight = 3\nmax_body_bytes = 3000\n";
    let ended = Program::bare()
        .file("animal-store.toml", file)
        .env("ANIMAL_STORE_HTTP__MAX_IN_FLIGHT", "4")
        .env("ANIMAL_STORE_HTTP__MAX_BODY_BYTES", "4000")
        .args(&["check-config", "--set", "http.max_body_bytes=5000"])
        .run();

    assert_eq!(value(&ended, "http.max_connections"), "10000");
    assert_eq!(value(&ended, "http.workers"), "3");
    assert_eq!(value(&ended, "http.max_in_flight"), "4");
    assert_eq!(value(&ended, "http.max_body_bytes"), "5000");
}

#[test]
fn options_may_stand_before_and_after_the_command() {
    let before = Program::bare().args(&["--listen", "127.0.0.1:7001", "check-config"]).run();
    let after = Program::bare().args(&["check-config", "--listen", "127.0.0.1:7001"]).run();

    assert_eq!(value(&before, "http.listen"), "127.0.0.1:7001");
    assert_eq!(before.stdout, after.stdout);
}

#[test]
fn a_file_that_is_named_takes_the_place_of_the_default_one() {
    let program = || Program::bare().file("animal-store.toml", "[http]\nworkers = 3\n");

    let ended =
        program().file("other.toml", "[log]\nformat = 'text'\n").args(&["check-config", "--config", "other.toml"]);
    let ended = ended.run();

    assert_eq!((value(&ended, "http.workers"), value(&ended, "log.format")), ("auto", "text"));
    let missing = program().args(&["check-config", "--config", "missing.toml"]).run();
    assert_refused(&missing, &["missing.toml"]);
}

#[test]
fn check_config_prints_every_key_and_no_secret() {
    let token = "a-token-that-nobody-may-see";
    let ended = Program::bare().env("ANIMAL_STORE_KEYS__MEMORY__TOKENS", token).args(&["check-config"]).run();

    let keys: Vec<_> = ended.stdout.iter().filter_map(|line| Some(line.split_once(" = ")?.0)).collect();
    let expected: Vec<_> = animal_store_server::Config::all_keys().map(|key| key.name).collect();
    assert_eq!(keys, expected);
    assert_eq!(value(&ended, "keys.memory.tokens"), "(set)");
    assert!(!ended.output().contains(token), "{ended:?}");
    assert_eq!(ended.stderr, Vec::<String>::new());
}

#[test]
fn check_config_prints_a_list_as_the_text_that_could_stand_for_it() {
    let file = "[http]\ncors_origins = ['https://shop.example', 'http://localhost:3000']\n";
    let listed = Program::bare().file("animal-store.toml", file).args(&["check-config"]).run();

    let text = value(&listed, "http.cors_origins");
    assert_eq!(text, "https://shop.example,http://localhost:3000");
    let again = Program::bare().env("ANIMAL_STORE_HTTP__CORS_ORIGINS", text).args(&["check-config"]).run();
    assert_eq!(again.stdout, listed.stdout);
    assert_eq!(value(&Program::bare().args(&["check-config"]).run(), "http.cors_origins"), "");
}

#[test]
fn an_origin_that_no_page_comes_from_is_told_before_the_service_listens() {
    for origin in ["https://${host}", "https://*.shop.example", "https://shop.example/", "*,https://shop.example"] {
        let variable = "ANIMAL_STORE_HTTP__CORS_ORIGINS";
        for command in [&["check-config"][..], &[]] {
            assert_refused(&Program::new().env(variable, origin).args(command).run(), &[variable]);
        }
    }
}

#[test]
fn everything_that_is_wrong_is_told_at_once_with_its_variable() {
    let ended = Program::new()
        .file("animal-store.toml", "[http]\nworkers = 0\n")
        .env("ANIMAL_STORE_HTTP__KEEP_ALIVE", "soon")
        .env("ANIMAL_STORE_LOG__FORMAT", "xml")
        .args(&["--set", "http.max_in_flight=-1", "--listen", "localhost"])
        .run();

    assert_refused(
        &ended,
        &[
            "http.workers (ANIMAL_STORE_HTTP__WORKERS)",
            "http.keep_alive (ANIMAL_STORE_HTTP__KEEP_ALIVE)",
            "log.format (ANIMAL_STORE_LOG__FORMAT)",
            "http.max_in_flight (ANIMAL_STORE_HTTP__MAX_IN_FLIGHT)",
            "http.listen (ANIMAL_STORE_HTTP__LISTEN)",
        ],
    );
}

#[test]
fn a_key_that_is_unknown_is_refused_wherever_it_stands() {
    let ended = Program::new()
        .file("animal-store.toml", "colour = 'red'\n[http]\nworkerz = 2\n[keys.memory]\ntoken = 'x'\n")
        .env("ANIMAL_STORE_HTTP__LISTENN", "127.0.0.1:0")
        .env("ANIMAL_STORE_HTTP_LISTEN", "127.0.0.1:0")
        .args(&["--set", "log.level=info"])
        .run();

    assert_refused(
        &ended,
        &[
            "animal-store.toml: colour",
            "animal-store.toml: http.workerz",
            "animal-store.toml: keys.memory.token ",
            "ANIMAL_STORE_HTTP__LISTENN",
            "ANIMAL_STORE_HTTP_LISTEN ",
            "--set log.level",
        ],
    );
}

#[test]
fn backends_that_do_not_exist_are_refused() {
    let ended = Program::new().args(&["--set", "storage.backend=disk", "--set", "keys.backend=file"]).run();

    assert_refused(
        &ended,
        &["storage.backend (ANIMAL_STORE_STORAGE__BACKEND)", "keys.backend (ANIMAL_STORE_KEYS__BACKEND)"],
    );
}

#[test]
fn a_number_and_a_text_mean_the_same_in_a_file() {
    for file in ["[http]\nworkers = 3\n", "[http]\nworkers = '3'\n", "http.workers = 3\n", "http = { workers = 3 }\n"] {
        let ended = Program::bare().file("animal-store.toml", file).args(&["check-config"]).run();
        assert_eq!(value(&ended, "http.workers"), "3", "{file}");
    }
}

#[test]
fn a_value_of_the_wrong_shape_is_refused() {
    for file in ["http = 3\n", "[http]\nworkers = [1, 2]\n", "[http.workers]\nx = 1\n", "[[http]]\nworkers = 1\n"] {
        let ended = Program::bare().file("animal-store.toml", file).args(&["check-config"]).run();
        assert_refused(&ended, &["http"]);
    }
}
