//! One session: requests of a peer, each checked as if nobody had before.

use super::cursor::{BUFFER, Cursor};
use super::overlap::Written;
use super::pipe::{Broken, Event, Pipe};
use super::server::Seat;
use super::table::{Piece, Table};
use super::wire::{DESCRIPTOR, REQUEST, Reply, Request, decode_descriptors};
use crate::batch::Operation;
use crate::error::{Side, Violation};

/// The peer hears how far a write has come every 8 MiB.
const REPORT: u64 = 8 << 20;

/// Serves until the connection or the session ends.
pub(super) fn serve(pipe: &mut Pipe, table: &Table, seat: &Seat<'_>) -> Result<(), Broken> {
    loop {
        pipe.wait_idle()?;
        let mut bytes = [0; REQUEST];
        pipe.receive_all(&mut bytes)?;
        let request = Request::decode(&bytes).map_err(|_| Broken)?;
        let count = usize::try_from(request.count).map_err(|_| Broken)?;
        let mut bytes = vec![0; count.saturating_mul(DESCRIPTOR)];
        pipe.receive_all(&mut bytes)?;
        let descriptors = decode_descriptors(&bytes).map_err(|_| Broken)?;
        drop(bytes);
        match check(table, request.operation, &descriptors) {
            Err((index, violation)) => deny(pipe, index, violation)?,
            Ok(pieces) => {
                let mut lens = descriptors.iter().map(|(_, len)| *len);
                let bytes = lens.try_fold(0_u64, u64::checked_add);
                if bytes != Some(request.bytes) {
                    return Err(Broken);
                }
                pipe.send_all(&Reply::Go.encode())?;
                match request.operation {
                    Operation::Write => write(pipe, &pieces, request, seat)?,
                    Operation::Read => read(pipe, &pieces, request, seat)?,
                }
            }
        }
    }
}

fn check(
    table: &Table,
    operation: Operation,
    descriptors: &[(u64, u64)],
) -> Result<Vec<Piece>, (usize, Violation)> {
    let pieces = table.locate(Side::Remote, descriptors.iter().copied())?;
    if operation == Operation::Write {
        Written::new(descriptors.iter().copied())?;
    }
    Ok(pieces)
}

fn deny(pipe: &mut Pipe, index: usize, violation: Violation) -> Result<(), Broken> {
    let index = u32::try_from(index).map_err(|_| Broken)?;
    pipe.send_all(&Reply::Denied { index, violation }.encode())
}

/// Takes the bytes of a write, also those that may not be put anywhere.
fn write(
    pipe: &mut Pipe,
    pieces: &[Piece],
    request: Request,
    seat: &Seat<'_>,
) -> Result<(), Broken> {
    let mut cursor = Cursor::new(pieces);
    let (mut left, mut unreported) = (request.bytes, 0_u64);
    while left > 0 {
        if seat.is_ended() {
            return Err(Broken);
        }
        match cursor.land(pipe, left)? {
            None => pipe.wait(Event::Readable)?,
            Some(got) => {
                left = left.saturating_sub(got);
                unreported = unreported.saturating_add(got);
            }
        }
        if unreported >= REPORT && left > 0 {
            unreported = 0;
            let count = u32::try_from(cursor.done()).map_err(|_| Broken)?;
            pipe.send_all(&Reply::Done { count }.encode())?;
        }
    }
    close_off(pipe, &cursor, request)
}

/// Sends the bytes of a read, in parts that are copied before they are
/// announced, so that a range may go at any time.
fn read(
    pipe: &mut Pipe,
    pieces: &[Piece],
    request: Request,
    seat: &Seat<'_>,
) -> Result<(), Broken> {
    let mut cursor = Cursor::new(pieces);
    let mut buffer = vec![0; BUFFER];
    loop {
        if seat.is_ended() {
            return Err(Broken);
        }
        let count = cursor.gather(&mut buffer, u64::MAX);
        if count == 0 {
            return close_off(pipe, &cursor, request);
        }
        let len = u64::try_from(count).map_err(|_| Broken)?;
        pipe.send_all(&Reply::Data { len }.encode())?;
        pipe.send_all(buffer.get(..count).ok_or(Broken)?)?;
    }
}

fn close_off(pipe: &mut Pipe, cursor: &Cursor<'_>, request: Request) -> Result<(), Broken> {
    if let Some((index, violation)) = cursor.denied() {
        return deny(pipe, index, violation);
    }
    let count = request.count;
    pipe.send_all(&Reply::Done { count }.encode())
}
