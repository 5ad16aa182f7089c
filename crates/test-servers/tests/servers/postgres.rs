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
        println!(
            "\nport {}\nfolder {}",
            SERVER.port(),
            SERVER.socket_directory().display()
        );
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
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe"))
        .lines()
        .map_while(Result::ok);
    let mut value = |name| {
        lines
            .find_map(|line| Some(line.strip_prefix(name)?.to_owned()))
            .expect("the line")
    };
    let port = value("port ").parse::<u16>().expect("a number");
    let folder = value("folder ");

    child.kill().expect("it still runs");
    child.wait().expect("the process exits");

    wait_until(|| TcpStream::connect(("127.0.0.1", port)).is_err() && !Path::new(&folder).exists());
}
