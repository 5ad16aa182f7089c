use std::future::pending;

use super::*;

#[tokio::test]
async fn the_error_of_a_task_names_it_and_the_reason() {
    let panicked = tokio::spawn(async { panic!("on purpose") }).await;
    let message = |result| format!("{:#}", task_error("the HTTP server", result));

    assert_eq!(message(Ok(Ok(()))), "the HTTP server stopped unexpectedly");
    assert_eq!(
        message(Ok(Err(io::Error::other("no workers")))),
        "the HTTP server failed: no workers"
    );
    assert!(message(panicked).starts_with("the HTTP server stopped unexpectedly: "));
}

/// Tasks that do not end by themselves.
fn tasks() -> Tasks {
    Tasks {
        api: tokio::spawn(pending()),
        management: None,
        writer: None,
        api_keys: JoinSet::new(),
        background: JoinSet::new(),
    }
}

#[tokio::test]
async fn a_panic_of_the_writer_during_the_shutdown_is_an_error() {
    for (writer, fails) in [
        (tokio::spawn(async { panic!("on purpose") }), true),
        (tokio::spawn(async {}), false),
    ] {
        let mut tasks = Tasks {
            api: tokio::spawn(async { Ok(()) }),
            writer: Some(writer),
            ..tasks()
        };
        let error = tasks.complete().await.map_err(|error| format!("{error:#}"));
        let expected = "the writer of the storage stopped unexpectedly: ";
        assert_eq!(error.is_err_and(|error| error.starts_with(expected)), fails);
    }
}

#[tokio::test]
async fn a_task_that_ends_without_a_shutdown_is_reported() {
    let failed = tokio::spawn(async { Err(io::Error::other("a worker thread has ended")) });
    let management = Tasks {
        management: Some(failed),
        ..tasks()
    };
    let writer = Tasks {
        writer: Some(tokio::spawn(async {})),
        ..tasks()
    };
    let panicked = tokio::spawn(async { panic!("on purpose") });
    let api_keys = Tasks {
        api_keys: [panicked].into_iter().collect(),
        ..tasks()
    };
    let mut background = tasks();
    background.background.spawn(async {});
    for (mut tasks, expected) in [
        (
            management,
            "the management server failed: a worker thread has ended",
        ),
        (writer, "the writer of the storage stopped unexpectedly"),
        (api_keys, "a task of API keys stopped unexpectedly"),
        (background, "a background task stopped unexpectedly"),
    ] {
        let error = tasks.stopped_unexpectedly().await;
        assert_eq!(format!("{error:#}"), expected);
    }
}
