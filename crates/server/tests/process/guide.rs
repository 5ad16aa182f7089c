//! The examples of `docs/api.md` work as shown.

use crate::prelude::*;

const GUIDE: &str = include_str!("../../../../docs/api.md");

/// A command and its output as shown.
struct Example {
    command: &'static str,
    shown: &'static str,
}

/// The texts that begin with the code of each block in this language.
fn blocks(language: &str) -> Vec<&'static str> {
    GUIDE.split(&format!("```{language}\n")).skip(1).collect()
}

fn examples() -> Vec<Example> {
    let example = |rest: &'static str| {
        let (command, rest) = rest.split_once("\n```\n").expect("the end of a command");
        let shown = rest.strip_prefix("```\n");
        let shown = shown.unwrap_or_else(|| panic!("no output after: {command}"));
        let (shown, _) = shown.split_once("\n```\n").expect("the end of an output");
        Example { command, shown }
    };
    blocks("sh").into_iter().map(example).collect()
}

#[track_caller]
fn assert_shows(example: &Example, output: &str) {
    let Example { command, shown } = example;
    let Some((shown_head, shown_body)) = shown.split_once("\n\n") else {
        return assert_eq!(output, *shown, "{command}");
    };
    let (head, body) = output
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("{command}: {output:?}"));
    assert_eq!(body, shown_body, "{command}");
    assert_eq!(head.lines().next(), shown_head.lines().next(), "{command}");
    for shown in shown_head.lines() {
        // A `…` at the end matches any text.
        let start = shown.strip_suffix('…');
        let is_shown = |line: &str| start.map_or(line == shown, |start| line.starts_with(start));
        let is_found = head.lines().any(is_shown);
        assert!(is_found, "{command}\nno {shown:?} in\n{head}");
    }
}

/// Runs a program with the two variables of the guide. Returns its output.
#[track_caller]
fn run(program: &str, args: &[&str], store: &str) -> String {
    let mut command = Command::new(program);
    let command = command.args(args).env("STORE", store).env("KEY", TOKEN);
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{program} is not installed: {error}"));
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn every_example_has_the_output_that_the_guide_shows() {
    let mut running = Program::with_key().start();
    let store = format!("http://{}", running.address());
    let examples = examples();
    assert!(examples.len() >= 10, "{} examples", examples.len());
    for example in examples {
        assert_shows(&example, &run("bash", &["-c", example.command], &store));
    }
}

#[test]
fn the_programs_of_the_guide_read_every_page_and_polls_return_each_pet_once() {
    let mut running = Program::with_key().start();
    let address = running.address();
    let store = format!("http://{address}");
    for _ in 0..101 {
        create_request(address, "Rex").send().assert_status(201);
    }
    let code = |rest: &'static str| rest.split_once("\n```").expect("the end of a block").0;
    let [pages, polls] = blocks("python")[..] else {
        panic!("other programs")
    };
    let [script] = blocks("js")[..] else {
        panic!("other programs")
    };
    let pages = code(pages);
    let read = run("python3", &["-c", pages], &store);
    let lines: Vec<_> = read.lines().collect();
    let url = format!("{store}/v1/pets?limit=100");
    assert_eq!((lines.len(), lines[0]), (2, &*format!("{url} 100")));
    assert!(lines[1].starts_with(&format!("{url}&cursor=")), "{read}");
    assert!(lines[1].ends_with(" 1"), "{read}");
    let module = ["--input-type=module", "-e", code(script)];
    assert_eq!(run("node", &module, &store), read);

    // The third pause ends the endless loop.
    let pauses =
        "import time; pauses = iter('12'); time.sleep = lambda _: next(pauses, None) or exit()";
    let polls = [pages, pauses, code(polls)].join("\n");
    let polled = run("python3", &["-c", &polls], &store);
    let new = polled.lines().filter(|line| line.starts_with("new: "));
    assert_eq!(new.count(), 101, "{polled}");
}
