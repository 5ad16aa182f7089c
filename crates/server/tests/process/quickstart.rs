//! The quickstart: the first start and later ones, without any configuration.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    process::Command,
};

use animal_store_test_servers::wait_until;
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    pets::status,
    program::{Line, Program, Running, terminal},
};

/// Runs a command as it was printed, and returns the head and the body of the response.
fn paste(command: &str) -> (String, Value) {
    let output = Command::new("bash").args(["-c", command]).output().expect("bash and curl are installed");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{command}: {text:?}"));
    (head.to_owned(), serde_json::from_str(body).expect("JSON"))
}

/// Waits for a line of standard error and returns the text after `prefix`.
pub(crate) fn printed(running: &mut Running, prefix: &str) -> String {
    running.wait_for(|line| match line {
        Line::Err(text) => text.trim_start().strip_prefix(prefix).map(str::to_owned),
        Line::Out(_) => None,
    })
}

/// Waits for the two commands.
pub(crate) fn commands(running: &mut Running) -> [String; 2] {
    [" -d ", "?status="].map(|part| {
        running.wait_for(|line| match line {
            Line::Err(text) if text.trim_start().starts_with("curl ") && text.contains(part) => Some(text.clone()),
            _ => None,
        })
    })
}

/// Returns the token in a command.
pub(crate) fn token(command: &str) -> String {
    let rest = command.split_once("Bearer ").expect("a token").1;
    rest.split_once('\'').expect("quotes").0.to_owned()
}

#[track_caller]
pub(crate) fn assert_both_work(add: &str, list: &str) -> Value {
    let (head, added) = paste(add);
    assert!(head.starts_with("HTTP/1.1 201 "), "{head}");
    assert_eq!((&added["name"], &added["status"]), (&"Rex".into(), &"available".into()));

    let (head, listed) = paste(list);
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert_eq!(listed, Value::Array(vec![added.clone()]));
    added
}

#[test]
fn both_commands_and_the_api_explorer_work_as_printed() {
    for program in [Program::with_file(), Program::with_file().args(&["--memory"]), Program::new()] {
        let mut running = program.print_key().start();
        let [add, list] = commands(&mut running);
        assert_both_work(&add, &list);

        let url = printed(&mut running, "In a browser, with the same key: ");
        let page = Command::new("curl").args(["-sfL", &url]).output().expect("curl is installed");
        assert!(page.status.success() && page.stdout.starts_with(b"<!DOCTYPE html>"), "{url}");
    }
}

#[test]
fn the_pet_and_the_key_of_the_first_start_are_there_after_a_restart() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().canonicalize().unwrap().join("animal-store.db");
    let kept = format!("Pets and API keys are kept in {}", path.display());
    let program = || Program::in_folder(folder.path()).print_key();
    let mut first = program().start();
    assert_eq!(printed(&mut first, &kept), "");
    let [add, list] = commands(&mut first);
    let added = assert_both_work(&add, &list);
    let first_address = first.address().to_string();
    assert_eq!(first.terminate().code, Some(0));

    let mut second = program().start();
    let create_key = printed(&mut second, "To create an API key: ");
    let address = second.address();
    let (_, listed) = paste(&list.replace(&first_address, &address.to_string()));
    assert_eq!(listed, Value::Array(vec![added]));

    // The command is for the shell and the folder in which the program was started.
    let output = Command::new("sh").args(["-c", &create_key]).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{create_key}: {output:?}");
    let new = String::from_utf8(output.stdout).unwrap();
    wait_until(|| status(address, new.trim()) == 200);

    let exited = second.terminate();
    let listens = format!("The animal store listens on http://{address}.");
    let printed: Vec<_> = exited.stderr.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
    assert_eq!(printed, [listens, kept, format!("To create an API key: {create_key}")]);
}

#[test]
fn the_printed_command_revokes_the_key() {
    let folder = TempDir::new().unwrap();
    let file = "storage.sqlite.path=it's pets.db";
    let mut running = Program::in_folder(folder.path()).args(&["serve", "--set", file]).print_key().start();
    let revoke = printed(&mut running, "The key below stays valid. To revoke it: ");
    let (address, token) = (running.address(), token(&commands(&mut running)[0]));
    assert_eq!(status(address, &token), 200);

    let output = Command::new("sh").args(["-c", &revoke]).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{revoke}: {output:?}");
    wait_until(|| status(address, &token) == 401);
    assert!(folder.path().join("it's pets.db").exists());
}

#[test]
fn the_token_is_only_in_the_two_commands_on_standard_error() {
    for program in [Program::with_file(), Program::new()] {
        let mut running = program.env("ANIMAL_STORE_LOG__FILTER", "trace").print_key().start();
        let [add, list] = commands(&mut running);
        let token = token(&add);
        assert!(token.len() >= 43, "256 bits: {token}");
        assert_both_work(&add, &list);

        let exited = running.terminate();

        assert_eq!(exited.code, Some(0), "{exited:?}");
        assert!(!exited.stdout.is_empty());
        assert!(!exited.stdout.join("\n").contains(&token), "the log contains the token");
        let showing: Vec<_> = exited.stderr.iter().filter(|line| line.contains(&token)).collect();
        assert_eq!(showing, [&add, &list]);
        assert_eq!(exited.stderr.iter().filter(|line| line.contains("curl")).count(), 2);
    }
}

#[test]
fn every_start_in_memory_generates_another_token() {
    let [first, second] = [(); 2].map(|()| token(&commands(&mut Program::new().print_key().start())[0]));
    assert_ne!(first, second);
}

#[test]
fn in_memory_nothing_is_left_in_the_folder() {
    let folder = TempDir::new().unwrap();
    let program = || Program::in_folder(folder.path()).args(&["--memory"]);
    commands(&mut program().print_key().start());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

    let contradiction = program().args(&["--set", "storage.backend=sqlite"]).run();
    contradiction.assert_error(2, &["animal-store: --memory contradicts --set storage.backend: omit one of them"]);
}

#[test]
fn nothing_is_printed_if_a_key_is_configured() {
    for program in [Program::with_key(), Program::with_file().env("ANIMAL_STORE_KEYS__MEMORY__TOKENS", "a")] {
        let mut running = program.print_key().start();
        running.address();
        running.terminate().assert_success();
    }
}

#[test]
fn no_key_is_created_if_standard_error_is_a_log_and_the_log_says_how_to_create_one() {
    let folder = TempDir::new().unwrap();
    for (program, advice) in [
        (
            Program::in_folder(folder.path()),
            "there is no API key: every request gets 401 until this command creates one",
        ),
        (Program::new(), "there is no API key: every request gets 401; set keys.memory.tokens and restart"),
    ] {
        let mut running = program.start();
        running.address();
        running.wait_for_event(advice);
        running.terminate().assert_success();
    }
    let list = Program::in_folder(folder.path()).args(&["keys", "list", "--json"]).run();
    assert_eq!(list.assert_success().stdout, ["[]"]);
}

#[test]
fn on_a_terminal_the_key_is_printed_unless_other_machines_can_connect() {
    let folder = TempDir::new().unwrap();
    let program = || Program::in_folder(folder.path());
    let (shown, stderr) = terminal();
    let public = ["--listen", "0.0.0.0:0"];
    assert_eq!(program().args(&public).stderr(stderr.try_clone().unwrap()).run().code, Some(1));
    assert_eq!(program().args(&["keys", "list", "--json"]).run().stdout, ["[]"]);

    let mut running = program().stderr(stderr).start();
    let lines = BufReader::new(File::from(shown)).lines().map_while(Result::ok);
    let add = lines.map(|line| line.trim().to_owned()).find(|line| line.starts_with("curl ")).expect("a command");
    assert_eq!(status(running.address(), &token(&add)), 200);
    running.terminate().assert_success();
}
