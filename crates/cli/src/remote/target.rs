//! The target: the process on the other side of a transfer.

use std::env;
use std::io::{BufReader, BufWriter};
use std::net::TcpStream;

use mooncake_pd_layout::import::{self, Side};

use super::error::RemoteError;
use super::frame::{self, FrameError, PAYLOAD_LIMIT};
use super::kind::Kinds;
use super::local::Local;
use super::message::{Answer, Ask, CHANNEL_ENV, Greeting, PROTOCOL, TOKEN_ENV};
use crate::number::index;

/// Serves the source that started this process, until it hangs up.
///
/// # Errors
/// No source has, or the channel broke. What the source asks for and can't be
/// done is answered, and ends nothing.
pub fn target() -> Result<(), RemoteError> {
    let variable = |variable| env::var(variable).map_err(|_| RemoteError::NoSource { variable });
    let address = variable(CHANNEL_ENV)?;
    let token = variable(TOKEN_ENV)?;
    let stream = TcpStream::connect(address).map_err(FrameError::Io)?;
    stream.set_nodelay(true).map_err(FrameError::Io)?;
    let mut from = BufReader::new(stream.try_clone().map_err(FrameError::Io)?);
    let mut to = BufWriter::new(stream);
    frame::write(&mut to, &Greeting { token }, &[])?;
    let mut local = None;
    loop {
        let (ask, payload) = match frame::read::<Ask>(&mut from) {
            Ok(read) => read,
            // The source has what it wanted, or is gone.
            Err(FrameError::Io(_)) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let (answer, bytes) = done(ask, &payload, &mut local).unwrap_or_else(|error| {
            let error = crate::output::chain(&error);
            (Answer::Error { error }, Vec::new())
        });
        frame::write(&mut to, &answer, &bytes)?;
    }
}

fn done(
    ask: Ask,
    payload: &[u8],
    local: &mut Option<Box<dyn Local>>,
) -> Result<(Answer, Vec<u8>), RemoteError> {
    if let Ask::Hello {
        protocol,
        engine,
        memory,
    } = &ask
    {
        if *protocol != PROTOCOL {
            return Err(RemoteError::Protocol {
                theirs: *protocol,
                ours: PROTOCOL,
            });
        }
        let kinds = Kinds::try_from((engine.as_str(), memory.as_str()))?;
        let started = local.insert(kinds.engine.start(kinds.memory)?);
        let name = started.name().to_owned();
        return Ok((
            Answer::Hello {
                protocol: PROTOCOL,
                name,
            },
            Vec::new(),
        ));
    }
    let local = local.as_mut().ok_or(RemoteError::Answer {
        expected: "hello",
        got: "something else".to_owned(),
    })?;
    match ask {
        Ask::Hello { .. } => Ok((Answer::Done, Vec::new())),
        Ask::Serve { layout } => {
            let layout = import::any(&layout.to_string(), Side::Decode)
                .map_err(|error| RemoteError::Layout(Box::new(error)))?;
            let map = local.serve(&layout)?;
            let regions = map.regions().iter().map(Into::into).collect();
            Ok((Answer::Serving { regions }, Vec::new()))
        }
        Ask::Write { allocation, offset } => {
            local.write(allocation, offset, payload)?;
            Ok((Answer::Done, Vec::new()))
        }
        Ask::Read {
            allocation,
            offset,
            len,
        } => {
            if len > u64::from(PAYLOAD_LIMIT) {
                return Err(FrameError::Payload { len }.into());
            }
            let mut bytes = vec![0; index(len)];
            local.read(allocation, offset, &mut bytes)?;
            Ok((Answer::Bytes, bytes))
        }
        Ask::Release => {
            local.release()?;
            Ok((Answer::Done, Vec::new()))
        }
    }
}
