//! The examples of `docs/api.md` work as shown.

use std::process::Command;

use crate::program::{Program, TOKEN};

const GUIDE: &str = include_str!("../../../../docs/api.md");

/// A command and its output as shown.
struct Example {
    command: &'static str,
    shown: &'static str,
}

fn examples() -> Vec<Example> {
    let blocks = GUIDE.split("```sh\n").skip(1);
    let examples = blocks.map(|rest| {
        let (command, rest) = rest.split_once("\n```\n").expect("the end of a command");
        let shown = rest.strip_prefix("```\n").unwrap_or_else(|| panic!("no output after: {command}"));
        Example { command, shown: shown.split_once("\n```\n").expect("the end of an output").0 }
    });
    examples.collect()
}

/// Returns whether a line equals the shown line. A `…` at the end matches any text.
fn is_shown(line: &str, shown: &str) -> bool {
    shown.strip_suffix('…').map_or(line == shown, |start| line.starts_with(start))
}

#[track_caller]
fn assert_shows(example: &Example, output: &str) {
    let Example { command, shown } = example;
    let Some((shown_head, shown_body)) = shown.split_once("\n\n") else {
        return assert_eq!(output, *shown, "{command}");
    };
    let (head, body) = output.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{command}: {output:?}"));
    assert_eq!(body, shown_body, "{command}");
    assert_eq!(head.lines().next(), shown_head.lines().next(), "{command}");
    for shown in shown_head.lines() {
        assert!(head.lines().any(|line| is_shown(line, shown)), "{command}\nno {shown:?} in\n{head}");
    }
}

#[test]
fn every_example_has_the_output_that_the_guide_shows() {
    let mut running = Program::with_key().start();
    let store = format!("http://{}", running.address());
    let examples = examples();
    assert!(examples.len() >= 10, "{} examples", examples.len());

    for example in examples {
        let bash = Command::new("bash")
            .args(["-c", example.command])
            .envs([("STORE", &*store), ("KEY", TOKEN)])
            .output()
            .expect("bash and curl are installed");
        assert!(bash.status.success(), "{}\n{}", example.command, String::from_utf8_lossy(&bash.stderr));
        assert_shows(&example, &String::from_utf8(bash.stdout).expect("UTF-8"));
    }
}
