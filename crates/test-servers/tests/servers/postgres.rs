use std::{
    env,
    io::{BufRead, BufReader},
    net::TcpStream,
    path::Path,
    process::{Command, Stdio},
    sync::LazyLock,
    thread,
};

use animal_store_test_servers::{PostgresServer, wait_until};

#[test]
fn a_server_ends_with_the_test_process_and_leaves_no_files() {
    static SERVER: LazyLock<PostgresServer> = LazyLock::new(PostgresServer::start);
    const CHILD: &str = "TEST_SERVERS_CHILD";
    if env::var_os(CHILD).is_some() {
        let folder = SERVER.socket_directory().display();
        println!("\nserver {} {folder}", SERVER.port());
        SERVER.sql("SELECT pg_sleep(1000)");
    }
    let name = thread::current()
        .name()
        .expect("the name of the test")
        .to_owned();
    let mut child = Command::new(env::current_exe().expect("this program"))
        .args(["--exact", &name, "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut lines = lines.map_while(Result::ok);
    let server = lines.find_map(|line| Some(line.strip_prefix("server ")?.to_owned()));
    let server = server.expect("the line");
    let (port, folder) = server.split_once(' ').expect("two values");
    let address = format!("127.0.0.1:{port}");

    child.kill().expect("it still runs");
    child.wait().expect("the process exits");

    wait_until(|| TcpStream::connect(&address).is_err() && !Path::new(folder).exists());
}
