//! Whom an engine serves: a thread that listens, and one for each connection.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::pipe::Pipe;
use super::serve::serve;
use super::table::Table;
use super::wire::{Answer, FRAME, Generation, Hello, Purpose, SessionId, VERSION, Verdict};

/// Connections that have not said what they are, 32. The oldest is dropped for
/// a new one, so that silent ones keep nobody out.
const MAX_STRANGERS: usize = 32;

/// How long a session is waited for that was told to end, 1 s.
const END_WAIT: Duration = Duration::from_secs(1);

/// When the system has no descriptor or memory for another connection, 10 ms.
const ACCEPT_NAP: Duration = Duration::from_millis(10);

/// What all connections share.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) table: Arc<Table>,
    pub(super) generation: Generation,
    pub(super) max_sessions: usize,
    pub(super) greeting: Duration,
    pub(super) stall: Duration,
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct State {
    closing: bool,
    next: u64,
    strangers: VecDeque<(u64, TcpStream)>,
    sessions: HashMap<SessionId, Served>,
}

#[derive(Debug)]
struct Served {
    connection: TcpStream,
    ended: Arc<AtomicBool>,
}

/// A session that is being served; it leaves when dropped.
#[derive(Debug)]
pub(super) struct Seat<'a> {
    server: &'a Server,
    id: SessionId,
    ended: Arc<AtomicBool>,
}

impl Seat<'_> {
    /// Whether somebody wants the session to end.
    pub(super) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.server.lock().sessions.remove(&self.id);
        self.server.left.notify_all();
    }
}

impl Server {
    pub(super) fn new(
        table: Arc<Table>,
        generation: Generation,
        max_sessions: usize,
        greeting: Duration,
        stall: Duration,
    ) -> Self {
        Self {
            table,
            generation,
            max_sessions,
            greeting,
            stall,
            state: Mutex::default(),
            left: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a connection about which nothing is known; its number.
    fn meet(&self, stream: &TcpStream) -> Option<u64> {
        let handle = stream.try_clone().ok()?;
        let mut state = self.lock();
        if state.closing {
            return None;
        }
        if state.strangers.len() >= MAX_STRANGERS
            && let Some((_, oldest)) = state.strangers.pop_front()
        {
            let _ = oldest.shutdown(Shutdown::Both);
        }
        let number = state.next;
        state.next = number.wrapping_add(1);
        state.strangers.push_back((number, handle));
        Some(number)
    }

    fn forget(&self, number: u64) {
        self.lock().strangers.retain(|(other, _)| *other != number);
    }

    /// Begins a session, if there is room for it.
    fn enter(&self, id: SessionId, connection: TcpStream) -> Option<Seat<'_>> {
        let mut state = self.lock();
        let full = state.sessions.len() >= self.max_sessions;
        if state.closing || full || state.sessions.contains_key(&id) {
            return None;
        }
        let ended = Arc::new(AtomicBool::new(false));
        let served = Served {
            connection,
            ended: Arc::clone(&ended),
        };
        state.sessions.insert(id, served);
        Some(Seat {
            server: self,
            id,
            ended,
        })
    }

    /// Ends a session; whether it is over. One that is not known is: it is
    /// entered before its peer may send anything but a hello.
    fn end(&self, id: SessionId) -> Verdict {
        let state = self.lock();
        if let Some(served) = state.sessions.get(&id) {
            served.close();
        }
        let gone = self
            .left
            .wait_timeout_while(state, END_WAIT, |state| state.sessions.contains_key(&id));
        if gone.unwrap_or_else(PoisonError::into_inner).1.timed_out() {
            Verdict::NotYet
        } else {
            Verdict::Ended
        }
    }

    fn close(&self) {
        let mut state = self.lock();
        state.closing = true;
        for (_, stranger) in &state.strangers {
            let _ = stranger.shutdown(Shutdown::Both);
        }
        state.sessions.values().for_each(Served::close);
    }

    /// One connection from its hello to its end.
    fn greet(&self, stream: TcpStream, number: u64) {
        let hello = Pipe::new(stream, self.stall).ok().and_then(|mut pipe| {
            let mut bytes = [0; FRAME];
            pipe.receive_within(&mut bytes, self.greeting).ok()?;
            Some((pipe, Hello::decode(&bytes).ok()?))
        });
        self.forget(number);
        let Some((mut pipe, hello)) = hello else {
            return;
        };
        let foreign = hello.expected != 0 && hello.expected != self.generation;
        let mut seat = None;
        let verdict = match hello.purpose {
            _ if hello.version != VERSION => Verdict::Version,
            _ if foreign => Verdict::OtherGeneration,
            Purpose::End => self.end(hello.session),
            Purpose::Session => {
                let handle = pipe.handle().ok();
                seat = handle.and_then(|handle| self.enter(hello.session, handle));
                if seat.is_some() {
                    Verdict::Welcome
                } else {
                    Verdict::Full
                }
            }
        };
        let answer = Answer {
            version: VERSION,
            verdict,
            generation: self.generation,
            number: hello.session.number,
        };
        if pipe.send_all(&answer.encode()).is_ok()
            && let Some(seat) = &seat
        {
            // Whatever went wrong, the connection is over.
            let _ = serve(&mut pipe, &self.table, seat);
        }
        // Nobody hears that the session is over while its bytes can be read.
        pipe.close();
        drop(seat);
    }
}

impl Served {
    fn close(&self) {
        self.ended.store(true, Ordering::Release);
        let _ = self.connection.shutdown(Shutdown::Both);
    }
}

/// The listening thread. Dropping it closes every connection, waits for their
/// threads, and only then closes the port: whoever is refused there knows that
/// nothing is written any more.
#[derive(Debug)]
pub(super) struct Listening {
    wake: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Listening {
    pub(super) fn start(listener: TcpListener, server: Arc<Server>) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let (wake, woken) = UnixStream::pair()?;
        let thread = std::thread::Builder::new()
            .name("tcp-listen".to_owned())
            .spawn(move || {
                listen(&listener, &woken, &server);
            })?;
        Ok(Self {
            wake,
            thread: Some(thread),
        })
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.wake.shutdown(Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            // It does not panic.
            let _ = thread.join();
        }
    }
}

fn listen(listener: &TcpListener, woken: &UnixStream, server: &Arc<Server>) {
    // Threads of strangers that were dropped may last for a moment longer.
    let most = server
        .max_sessions
        .saturating_add(MAX_STRANGERS)
        .saturating_add(MAX_STRANGERS);
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    loop {
        let mut events = [
            PollFd::new(listener, PollFlags::IN),
            PollFd::new(woken, PollFlags::IN),
        ];
        match poll(&mut events, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => std::thread::sleep(ACCEPT_NAP),
        }
        let [_, wake] = &events;
        if !wake.revents().is_empty() {
            break;
        }
        threads.retain(|thread| !thread.is_finished());
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(_) => {
                std::thread::sleep(ACCEPT_NAP);
                continue;
            }
        };
        if threads.len() >= most {
            continue;
        }
        let Some(number) = server.meet(&stream) else {
            continue;
        };
        let shared = Arc::clone(server);
        let thread = std::thread::Builder::new()
            .name("tcp-serve".to_owned())
            .spawn(move || shared.greet(stream, number));
        match thread {
            Ok(thread) => threads.push(thread),
            Err(_) => server.forget(number),
        }
    }
    server.close();
    for thread in threads {
        let _ = thread.join();
    }
}
