use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
    thread,
};

/// A link that passes everything on but answers in which this text occurs: those wait until it lets them go, and so
/// does what is behind them on their connection.
pub(crate) struct HoldingLink {
    pub(crate) address: SocketAddr,
    hold: Arc<Hold>,
}

struct Hold {
    text: &'static str,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    held: usize,
    released: bool,
}

impl HoldingLink {
    pub(crate) fn to(port: u16, text: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let hold = Arc::new(Hold { text, state: Mutex::default(), changed: Condvar::new() });
        let link = Self { address, hold: Arc::clone(&hold) };
        // It ends with the process, which is that of one test.
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect(("127.0.0.1", port)).expect("the server");
                let clone = |stream: &TcpStream| stream.try_clone().expect("a file descriptor");
                let (question, answer) = ((clone(&client), clone(&server)), (server, client));
                thread::spawn(move || pass_on(question.0, question.1, |_| ()));
                let hold = Arc::clone(&hold);
                thread::spawn(move || pass_on(answer.0, answer.1, |text| hold.wait(text)));
            }
        });
        link
    }

    /// How many answers wait.
    pub(crate) fn held(&self) -> usize {
        self.hold.state.lock().expect("the state").held
    }

    /// Lets them go, and every later one.
    pub(crate) fn release(&self) {
        self.hold.state.lock().expect("the state").released = true;
        self.hold.changed.notify_all();
    }
}

impl Hold {
    fn wait(&self, answer: &[u8]) {
        if answer.windows(self.text.len()).any(|part| part == self.text.as_bytes()) {
            let mut state = self.state.lock().expect("the state");
            state.held += 1;
            drop(self.changed.wait_while(state, |state| !state.released).expect("the state"));
        }
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, before: impl Fn(&[u8])) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        before(&buffer[..length]);
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    for stream in [from, to] {
        // The other end may have closed it.
        let _ = stream.shutdown(Shutdown::Both);
    }
}
