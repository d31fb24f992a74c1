//! The source's end of the channel to its target.

use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::fmt::Debug;
use std::hash::{BuildHasher, Hasher};
use std::io::{BufReader, BufWriter, ErrorKind};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use mooncake_pd_layout::CacheLayout;
use mooncake_pd_rdma::RegionMap;

use super::error::RemoteError;
use super::frame::{self, FrameError};
use super::kind::Kinds;
use super::message::{Answer, Ask, CHANNEL_ENV, Greeting, PROTOCOL, TOKEN_ENV, map};

/// How long a target may take to call, and to answer.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long a target may take to end when its source hangs up.
const END: Duration = Duration::from_secs(10);
/// Pause between two looks.
const LOOK: Duration = Duration::from_millis(2);

/// A target that runs. Dropping it hangs up, and ends it if it does not end.
#[derive(Debug)]
pub(crate) struct Target {
    child: Child,
    from: BufReader<TcpStream>,
    to: BufWriter<TcpStream>,
    name: String,
}

impl Target {
    /// Starts a target: the program and its arguments, or this command.
    pub(crate) fn start(program: &[OsString], kinds: Kinds) -> Result<Self, RemoteError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(FrameError::Io)?;
        listener.set_nonblocking(true).map_err(FrameError::Io)?;
        let address = listener.local_addr().map_err(FrameError::Io)?;
        let token = token();
        let (name, mut command) = command(program)?;
        let child = command
            .env(CHANNEL_ENV, address.to_string())
            .env(TOKEN_ENV, &token)
            .stdin(Stdio::null())
            // Libraries write there; the standard output is the source's.
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| RemoteError::Spawn {
                program: name,
                error,
            })?;
        let mut starting = Starting(Some(child));
        let stream = called(&listener, &token, &mut starting)?;
        let child = starting
            .0
            .take()
            .ok_or(RemoteError::Silent { seconds: 0 })?;
        let from = match stream.try_clone() {
            Ok(from) => BufReader::new(from),
            Err(error) => {
                drop(Starting(Some(child)));
                return Err(FrameError::Io(error).into());
            }
        };
        let mut target = Self {
            child,
            from,
            to: BufWriter::new(stream),
            name: String::new(),
        };
        target.name = target.hello(kinds)?;
        Ok(target)
    }

    /// What its engine's peers open.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn hello(&mut self, kinds: Kinds) -> Result<String, RemoteError> {
        let ask = Ask::Hello {
            protocol: PROTOCOL,
            engine: kinds.engine.name().to_owned(),
            memory: kinds.memory.to_string(),
        };
        match self.ask(&ask, &[])? {
            (Answer::Hello { protocol, .. }, _) if protocol != PROTOCOL => {
                Err(RemoteError::Protocol {
                    theirs: protocol,
                    ours: PROTOCOL,
                })
            }
            (Answer::Hello { name, .. }, _) => Ok(name),
            (other, _) => Err(unexpected("hello", &other)),
        }
    }

    /// Has a layout's memory allocated and registered.
    pub(crate) fn serve(&mut self, layout: &CacheLayout) -> Result<RegionMap, RemoteError> {
        let text = layout.to_json()?;
        let layout = serde_json::from_str(&text).map_err(FrameError::Message)?;
        match self.ask(&Ask::Serve { layout }, &[])? {
            (Answer::Serving { regions }, _) => map(&regions),
            (other, _) => Err(unexpected("serving", &other)),
        }
    }

    /// Writes bytes of an allocation.
    pub(crate) fn write(
        &mut self,
        allocation: u32,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), RemoteError> {
        self.done(&Ask::Write { allocation, offset }, bytes)
    }

    /// Reads bytes of an allocation.
    pub(crate) fn read(
        &mut self,
        allocation: u32,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<(), RemoteError> {
        let len = crate::number::count(bytes.len());
        let ask = Ask::Read {
            allocation,
            offset,
            len,
        };
        match self.ask(&ask, &[])? {
            (Answer::Bytes, payload) if payload.len() == bytes.len() => {
                bytes.copy_from_slice(&payload);
                Ok(())
            }
            (Answer::Bytes, payload) => Err(RemoteError::Short {
                expected: len,
                got: crate::number::count(payload.len()),
            }),
            (other, _) => Err(unexpected("bytes", &other)),
        }
    }

    /// Has the memory unregistered and freed.
    pub(crate) fn release(&mut self) -> Result<(), RemoteError> {
        self.done(&Ask::Release, &[])
    }

    fn done(&mut self, ask: &Ask, payload: &[u8]) -> Result<(), RemoteError> {
        match self.ask(ask, payload)? {
            (Answer::Done, _) => Ok(()),
            (other, _) => Err(unexpected("done", &other)),
        }
    }

    fn ask(&mut self, ask: &Ask, payload: &[u8]) -> Result<(Answer, Vec<u8>), RemoteError> {
        frame::write(&mut self.to, ask, payload)?;
        match frame::read(&mut self.from)? {
            (Answer::Error { error }, _) => Err(RemoteError::Target(error)),
            answered => Ok(answered),
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // Without the channel it ends by itself.
        let _ = self.to.get_ref().shutdown(Shutdown::Both);
        let start = Instant::now();
        while start.elapsed() < END {
            match self.child.try_wait() {
                Ok(None) => thread::sleep(LOOK),
                Ok(Some(_)) | Err(_) => return,
            }
        }
        end(&mut self.child);
    }
}

/// A target that has not called yet.
struct Starting(Option<Child>);

impl Drop for Starting {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            end(child);
        }
    }
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

fn command(program: &[OsString]) -> Result<(String, Command), RemoteError> {
    if let [program, args @ ..] = program {
        let mut command = Command::new(program);
        command.args(args);
        return Ok((program.display().to_string(), command));
    }
    let this = std::env::current_exe().map_err(|error| RemoteError::Spawn {
        program: "this command".to_owned(),
        error,
    })?;
    let mut command = Command::new(&this);
    command.arg("target");
    Ok((this.display().to_string(), command))
}

/// Waits for the target's call; hangs up on anybody else.
fn called(
    listener: &TcpListener,
    token: &str,
    starting: &mut Starting,
) -> Result<TcpStream, RemoteError> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        match listener.accept() {
            Ok((stream, _)) => {
                if let Ok(stream) = greeted(stream, token) {
                    return Ok(stream);
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if let Some(child) = &mut starting.0
                    && let Some(status) = child.try_wait().map_err(FrameError::Io)?
                {
                    return Err(RemoteError::Ended { status });
                }
                thread::sleep(LOOK);
            }
            Err(error) => return Err(FrameError::Io(error).into()),
        }
    }
    Err(RemoteError::Silent {
        seconds: PATIENCE.as_secs(),
    })
}

/// The stream of a caller that says the token at once.
fn greeted(stream: TcpStream, token: &str) -> Result<TcpStream, FrameError> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let (greeting, _): (Greeting, _) = frame::read(&mut &stream)?;
    if greeting.token != token {
        return Err(FrameError::Io(ErrorKind::PermissionDenied.into()));
    }
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// 128 random bits.
fn token() -> String {
    let word = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", word(), word())
}

fn unexpected(expected: &'static str, got: &Answer) -> RemoteError {
    RemoteError::Answer {
        expected,
        got: format!("{got:?}").chars().take(200).collect(),
    }
}
