use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Command, Stdio},
    sync::{LazyLock, mpsc},
    thread,
    time::{Duration, Instant},
};

use animal_store_test_servers::PostgresServer;

const TIMEOUT: Duration = Duration::from_secs(10);

#[test]
fn committed_data_survives_a_crash() {
    let mut server = PostgresServer::start();
    server.sql("postgres", "CREATE TABLE pets (name text)");
    server.sql("postgres", "INSERT INTO pets VALUES ('Rex')");
    let url = server.url("postgres");

    server.stop();
    TcpStream::connect(("127.0.0.1", server.port())).expect_err("nothing listens");
    server.start_again();

    assert_eq!(server.url("postgres"), url);
    assert_eq!(server.sql("postgres", "SELECT name FROM pets"), "Rex");
}

#[test]
fn a_paused_server_does_not_respond_until_it_is_resumed() {
    let server = PostgresServer::start();
    let mut client = Command::new("psql")
        .args(["-qAtX", "-d", &server.url("postgres")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("psql runs");
    let mut input = client.stdin.take().expect("a pipe");
    let lines = BufReader::new(client.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let (sender, responses) = mpsc::channel();
    thread::spawn(move || lines.for_each(|line| drop(sender.send(line))));
    input.write_all(b"SELECT 'before';\n").expect("sent");
    assert_eq!(responses.recv_timeout(TIMEOUT).as_deref(), Ok("before"));

    server.pause();

    input.write_all(b"SELECT 'meanwhile';\n").expect("sent");
    // A server responds to a request for TLS before it authenticates the client.
    let mut new_client = TcpStream::connect(("127.0.0.1", server.port())).expect("the system accepts connections");
    new_client.write_all(&[0, 0, 0, 8, 4, 210, 22, 47]).expect("sent");
    assert_eq!(responses.recv_timeout(Duration::from_millis(200)), Err(mpsc::RecvTimeoutError::Timeout));
    new_client.set_read_timeout(Some(Duration::from_millis(1))).expect("set");
    new_client.read(&mut [0]).expect_err("no response");

    server.resume();

    assert_eq!(responses.recv_timeout(TIMEOUT).as_deref(), Ok("meanwhile"));
    new_client.set_read_timeout(Some(TIMEOUT)).expect("set");
    new_client.read_exact(&mut [0]).expect("a response");
    drop(input);
    client.wait().expect("the process exits");
}

#[test]
fn a_server_ends_with_the_test_process_and_leaves_no_files() {
    static SERVER: LazyLock<PostgresServer> = LazyLock::new(PostgresServer::start);
    const CHILD: &str = "TEST_SERVERS_CHILD";
    if env::var_os(CHILD).is_some() {
        println!("\nport {}\nfolder {}", SERVER.port(), SERVER.socket_directory().display());
        SERVER.sql("postgres", "SELECT pg_sleep(1000)");
    }
    let name = thread::current().name().expect("the name of the test").to_owned();
    let mut child = Command::new(env::current_exe().expect("this program"))
        .args(["--exact", &name, "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let mut value = |name| lines.find_map(|line| Some(line.strip_prefix(name)?.to_owned())).expect("the line");
    let (port, folder) = (value("port ").parse::<u16>().expect("a number"), value("folder "));

    child.kill().expect("it still runs");
    child.wait().expect("the process exits");

    let start = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_ok() || Path::new(&folder).exists() {
        assert!(start.elapsed() < TIMEOUT, "it still exists");
    }
}
