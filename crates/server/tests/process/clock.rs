//! The program in another year.

use crate::prelude::*;

/// A library whose clock is ten years ahead.
const LATER: &str = r"
    #define _GNU_SOURCE
    #include <sys/syscall.h>
    #include <time.h>
    #include <unistd.h>
    int clock_gettime(clockid_t clock, struct timespec *time) {
        int result = syscall(SYS_clock_gettime, clock, time);
        if (clock == CLOCK_REALTIME) time->tv_sec += 10 * 365 * 24 * 3600;
        return result;
    }";

#[test]
fn nothing_switches_itself_off_on_2030_12_05() {
    let folder = new_folder();
    let [source, library] =
        ["later.c", "later.so"].map(|name| folder.path().join(name).display().to_string());
    fs::write(&source, LATER).expect("a file");
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-o", &library, &source])
        .status();
    assert!(compiled.expect("cc is installed").success());

    let mut running = Program::with_key().env("LD_PRELOAD", &library).start();
    let started = running.wait_for_event("listening")["timestamp"]
        .as_str()
        .map(str::to_owned);
    assert!(started.as_deref() > Some("2030-12-06"), "{started:?}");
    let address = running.address();
    create_request(address, "Rex").send().assert_status(201);
    let client = HttpClient::new(address).with_token(TOKEN);
    client.get("/v1/pets").assert_status(200);
    let found = client.get("/v1/pets/1");
    found
        .assert_status(200)
        .assert_header("Sunset", Some("Thu, 05 Dec 2030 00:00:00 GMT"));
}
