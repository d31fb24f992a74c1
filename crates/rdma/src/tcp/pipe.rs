//! A connection that is never waited for without a time limit.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// The connection is of no use any more: closed, broken, stalled or nonsense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// Nothing has happened for so long that nobody knows whether it will, 1 s.
const QUIET: Duration = Duration::from_secs(1);

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Readable,
    Writable,
    /// Room to write, or something to read.
    Either,
}

/// A TCP connection. Its socket never blocks, so that memory can be locked
/// while bytes go to or from it.
#[derive(Debug)]
pub(super) struct Pipe {
    stream: TcpStream,
    /// How long nothing may happen.
    stall: Duration,
    /// Set while nothing has happened for a while.
    quiet: Arc<AtomicBool>,
}

impl Pipe {
    pub(super) fn new(stream: TcpStream, stall: Duration) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            stall,
            quiet: Arc::default(),
        })
    }

    /// Another handle of the connection, to close or to look at it.
    pub(super) fn handle(&self) -> io::Result<TcpStream> {
        self.stream.try_clone()
    }

    /// Whether nothing has happened for a while.
    pub(super) fn quiet(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.quiet)
    }

    pub(super) fn close(&self) {
        // It may be closed already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Receives what is there, at most `into`; `None` is nothing yet.
    pub(super) fn receive(&mut self, into: &mut [u8]) -> Result<Option<usize>, Broken> {
        count(self.stream.read(into))
    }

    /// Sends what there is room for; `None` is none.
    pub(super) fn send(&mut self, from: &[u8]) -> Result<Option<usize>, Broken> {
        count(self.stream.write(from))
    }

    /// Waits for the other side, for the stall limit at most.
    pub(super) fn wait(&self, event: Event) -> Result<(), Broken> {
        self.wait_until(event, Instant::now().checked_add(self.stall))
    }

    /// Waits for something to read, for as long as it lasts.
    pub(super) fn wait_idle(&self) -> Result<(), Broken> {
        self.wait_until(Event::Readable, None)
    }

    fn wait_until(&self, event: Event, deadline: Option<Instant>) -> Result<(), Broken> {
        let flags = match event {
            Event::Readable => PollFlags::IN,
            Event::Writable => PollFlags::OUT,
            Event::Either => PollFlags::IN | PollFlags::OUT,
        };
        loop {
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(Broken);
            }
            let nap = left.map(|left| left.min(QUIET).max(Duration::from_millis(1)));
            let nap = nap.and_then(|nap| Timespec::try_from(nap).ok());
            match poll(&mut [PollFd::new(&self.stream, flags)], nap.as_ref()) {
                Ok(0) => self.quiet.store(true, Ordering::Release),
                Ok(_) => {
                    self.quiet.store(false, Ordering::Release);
                    return Ok(());
                }
                Err(Errno::INTR) => {}
                Err(_) => return Err(Broken),
            }
        }
    }

    /// Fills `into`; the other side may do nothing for the stall limit.
    pub(super) fn receive_all(&mut self, into: &mut [u8]) -> Result<(), Broken> {
        self.fill(into, None)
    }

    /// Fills `into` within `limit`, however the bytes trickle in.
    pub(super) fn receive_within(
        &mut self,
        into: &mut [u8],
        limit: Duration,
    ) -> Result<(), Broken> {
        self.fill(into, Instant::now().checked_add(limit))
    }

    fn fill(&mut self, into: &mut [u8], deadline: Option<Instant>) -> Result<(), Broken> {
        let mut rest = into;
        while !rest.is_empty() {
            match self.receive(rest)? {
                Some(got) => rest = rest.get_mut(got..).ok_or(Broken)?,
                None if deadline.is_some() => self.wait_until(Event::Readable, deadline)?,
                None => self.wait(Event::Readable)?,
            }
        }
        Ok(())
    }

    /// Sends all of `from`, while nothing is expected from the other side.
    pub(super) fn send_all(&mut self, from: &[u8]) -> Result<(), Broken> {
        let mut rest = from;
        while !rest.is_empty() {
            match self.send(rest)? {
                Some(sent) => rest = rest.get(sent..).ok_or(Broken)?,
                None => self.wait(Event::Writable)?,
            }
        }
        Ok(())
    }
}

fn count(result: io::Result<usize>) -> Result<Option<usize>, Broken> {
    match result {
        Ok(0) => Err(Broken),
        Ok(count) => Ok(Some(count)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Ok(None)
        }
        Err(_) => Err(Broken),
    }
}
