//! Connecting to a peer, and asking it to end a connection.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::pipe::Pipe;
use super::wire::{Answer, FRAME, Generation, Hello, Purpose, SessionId, VERSION, Verdict};

/// How long a peer is waited for that is asked to end a session, 2 s: longer
/// than it waits for the session itself.
const END_LIMIT: Duration = Duration::from_secs(2);

/// Why nobody that speaks our language answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DialError {
    /// Nobody listens there.
    Refused,
    /// No connection, for another reason or none in time.
    Unreachable,
    /// A connection, and no answer in time or one that is none.
    NoAnswer,
    /// It speaks another version.
    Version(u32),
}

/// What became of a session whose connection is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The peer is there, and does nothing for the session any more.
    Ended,
    /// Nobody listens there any more; the peer closes its port last.
    Gone,
    /// Another engine listens there now.
    Replaced(Generation),
    /// The peer may still write.
    Unclear,
}

/// Connects and exchanges hellos.
pub(super) fn dial(
    address: SocketAddr,
    hello: Hello,
    stall: Duration,
    limit: Duration,
) -> Result<(Pipe, Answer), DialError> {
    let start = Instant::now();
    let stream = TcpStream::connect_timeout(&address, limit).map_err(|error| {
        if error.kind() == ErrorKind::ConnectionRefused {
            DialError::Refused
        } else {
            DialError::Unreachable
        }
    })?;
    let mut pipe = Pipe::new(stream, stall).map_err(|_| DialError::Unreachable)?;
    let mut bytes = [0; FRAME];
    let left = limit.saturating_sub(start.elapsed());
    pipe.send_all(&hello.encode())
        .and_then(|()| pipe.receive_within(&mut bytes, left))
        .map_err(|_| DialError::NoAnswer)?;
    let answer = Answer::decode(&bytes).map_err(|_| DialError::NoAnswer)?;
    if answer.version != VERSION || answer.verdict == Verdict::Version {
        return Err(DialError::Version(answer.version));
    }
    if answer.number != hello.session.number {
        return Err(DialError::NoAnswer);
    }
    Ok((pipe, answer))
}

/// Asks the peer that was opened in `generation` to end a session.
pub(super) fn end(address: SocketAddr, session: SessionId, generation: Generation) -> Fate {
    let hello = Hello {
        version: VERSION,
        purpose: Purpose::End,
        session,
        expected: generation,
    };
    match dial(address, hello, END_LIMIT, END_LIMIT) {
        Ok((_, answer)) if answer.generation != generation => Fate::Replaced(answer.generation),
        Ok((_, answer)) if answer.verdict == Verdict::Ended => Fate::Ended,
        Err(DialError::Refused) => Fate::Gone,
        Ok(_) | Err(_) => Fate::Unclear,
    }
}
