use super::*;

#[tokio::test]
async fn a_server_error_names_the_server_and_the_reason() {
    let panicked = tokio::spawn(async { panic!("on purpose") }).await;
    let message = |result| format!("{:#}", server_error("the HTTP server", result));

    assert_eq!(message(Ok(Ok(()))), "the HTTP server stopped unexpectedly");
    assert_eq!(message(Ok(Err(io::Error::other("no workers")))), "the HTTP server failed: no workers");
    assert!(message(panicked).starts_with("the HTTP server stopped unexpectedly: "));
}

#[tokio::test]
async fn a_panic_of_the_writer_during_the_shutdown_is_an_error() {
    let mut panicked = tokio::spawn(async { panic!("on purpose") });
    let error = end_of_writer(Some(&mut panicked)).await.expect_err("a panic");
    assert!(format!("{error:#}").starts_with("the writer of the storage stopped unexpectedly: "), "{error:#}");
    end_of_writer(Some(&mut tokio::spawn(async {}))).await.expect("an end");
}

#[tokio::test]
async fn a_writer_that_stops_is_reported() {
    let writer = Some(tokio::spawn(async {}));
    let mut tasks = Tasks { api: tokio::spawn(pending()), management: None, writer, uses_writer: None };
    let error = tasks.stopped_unexpectedly().await;
    assert_eq!(error.to_string(), "the writer of the storage stopped unexpectedly");
}

#[tokio::test]
async fn a_management_server_that_fails_is_reported() {
    let failed = tokio::spawn(async { Err(io::Error::other("a worker thread has ended")) });
    let mut tasks = Tasks { api: tokio::spawn(pending()), management: Some(failed), writer: None, uses_writer: None };
    let error = tasks.stopped_unexpectedly().await;
    assert_eq!(format!("{error:#}"), "the management server failed: a worker thread has ended");
}
