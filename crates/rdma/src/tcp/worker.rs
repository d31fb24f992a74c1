//! The thread that moves bytes to and from one opened peer.

use std::mem;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use super::LOST;
use super::cursor::Cursor;
use super::dial::Fate;
use super::flight::{End, Track};
use super::link::{Closing, Session, Standing};
use super::pipe::{Broken, Event, Pipe};
use super::table::{Piece, Table};
use super::wire::{self, FRAME, Reply, Request};
use crate::batch::Operation;
use crate::error::TaskFailure;
use crate::native::{Guard, Permit};

/// Between two questions whether a lost session has ended: 20 ms at first, and
/// a second at most.
const FIRST_NAP: Duration = Duration::from_millis(20);
const LONGEST_NAP: Duration = Duration::from_secs(1);

/// A submission, with all that must outlive it.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) operation: Operation,
    pub(super) local: Vec<Piece>,
    /// Address and bytes of each descriptor on the peer's side.
    pub(super) remote: Vec<(u64, u64)>,
    pub(super) holds: Vec<Arc<Guard<Table>>>,
    pub(super) permit: Permit,
    pub(super) track: Arc<Track>,
}

impl Job {
    /// Lets go of everything before anybody hears of the end, so that who does
    /// can unregister and submit.
    fn finish(self, end: End) {
        let track = self.track;
        drop((self.local, self.holds, self.permit));
        track.end(end);
    }

    fn bytes(&self) -> u64 {
        let bytes = self.remote.iter().map(|(_, len)| *len);
        bytes.fold(0, u64::saturating_add)
    }
}

#[derive(Debug)]
pub(super) struct Worker {
    pipe: Pipe,
    session: Arc<Session>,
    closing: Arc<Closing>,
}

impl Worker {
    pub(super) const fn new(pipe: Pipe, session: Arc<Session>, closing: Arc<Closing>) -> Self {
        Self {
            pipe,
            session,
            closing,
        }
    }

    /// Works until the queue is closed and empty.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        let lost = End::Failed(TaskFailure::Engine { code: LOST });
        while let Ok(job) = jobs.recv() {
            if self.session.standing() != Standing::Open {
                // Nothing of it was sent.
                job.finish(lost);
                continue;
            }
            if let Ok(end) = self.perform(&job) {
                job.finish(end);
                continue;
            }
            // From here on this side touches no memory of the job.
            self.session.lose();
            self.pipe.close();
            job.track.doubt();
            match self.resolve() {
                Fate::Ended => job.finish(lost),
                Fate::Gone | Fate::Replaced(_) => job.finish(End::Failed(TaskFailure::PeerGone)),
                // Nobody will ever know: what it holds stays.
                Fate::Unclear => mem::forget(job),
            }
        }
        // The engine may have another handle of it.
        self.pipe.close();
    }

    /// Asks what became of a lost session until it is known, or the engine goes
    /// away.
    fn resolve(&self) -> Fate {
        let mut nap = FIRST_NAP;
        loop {
            let fate = self.session.end();
            if fate != Fate::Unclear || self.closing.wait(nap) {
                return fate;
            }
            nap = nap.saturating_mul(2).min(LONGEST_NAP);
        }
    }

    fn perform(&mut self, job: &Job) -> Result<End, Broken> {
        let request = Request {
            operation: job.operation,
            count: u32::try_from(job.remote.len()).map_err(|_| Broken)?,
            bytes: job.bytes(),
        };
        let mut message = request.encode().to_vec();
        wire::encode_descriptors(&job.remote, &mut message);
        self.pipe.send_all(&message)?;
        match self.reply()? {
            Reply::Go => {}
            Reply::Denied { index, violation } => return denied(job, index, violation),
            Reply::Done { .. } | Reply::Data { .. } => return Err(Broken),
        }
        match job.operation {
            Operation::Write => self.write(job),
            Operation::Read => self.read(job),
        }
    }

    fn reply(&mut self) -> Result<Reply, Broken> {
        let mut bytes = [0; FRAME];
        self.pipe.receive_all(&mut bytes)?;
        Reply::decode(&bytes).map_err(|_| Broken)
    }

    /// Streams all bytes, and listens to the peer as it counts them.
    fn write(&mut self, job: &Job) -> Result<End, Broken> {
        let mut cursor = Cursor::new(&job.local);
        let mut frame = [0; FRAME];
        let mut heard = 0_usize;
        loop {
            let sent = cursor.stream(&mut self.pipe)?;
            if cursor.denied().is_some() {
                // Held ranges stay registered: there is something wrong here.
                return Err(Broken);
            }
            let all_sent = sent == Some(0);
            if sent.is_none() || all_sent {
                let event = if all_sent {
                    Event::Readable
                } else {
                    Event::Either
                };
                self.pipe.wait(event)?;
            }
            let rest = frame.get_mut(heard..).ok_or(Broken)?;
            // A look costs as much as sending: only when there was no room.
            let got = if sent.is_none() || all_sent {
                self.pipe.receive(rest)?
            } else {
                None
            };
            heard = heard.saturating_add(got.unwrap_or(0));
            if heard < FRAME {
                continue;
            }
            heard = 0;
            match Reply::decode(&frame).map_err(|_| Broken)? {
                Reply::Done { count } => {
                    if done(job, count)? == job.track.tasks() && all_sent {
                        return Ok(End::Completed);
                    }
                }
                // It comes when the peer has received everything.
                Reply::Denied { index, violation } if all_sent => {
                    return denied(job, index, violation);
                }
                Reply::Denied { .. } | Reply::Go | Reply::Data { .. } => return Err(Broken),
            }
        }
    }

    /// Takes what the peer sends.
    fn read(&mut self, job: &Job) -> Result<End, Broken> {
        let mut cursor = Cursor::new(&job.local);
        let mut left = job.bytes();
        loop {
            match self.reply()? {
                Reply::Data { len } if len <= left => {
                    left = left.saturating_sub(len);
                    let mut len = len;
                    while len > 0 {
                        match cursor.land(&mut self.pipe, len)? {
                            Some(got) => len = len.saturating_sub(got),
                            None => self.pipe.wait(Event::Readable)?,
                        }
                        if cursor.denied().is_some() {
                            return Err(Broken);
                        }
                        job.track.done(cursor.done());
                    }
                }
                Reply::Denied { index, violation } => return denied(job, index, violation),
                Reply::Done { count } if left == 0 && done(job, count)? == job.track.tasks() => {
                    return Ok(End::Completed);
                }
                Reply::Data { .. } | Reply::Done { .. } | Reply::Go => return Err(Broken),
            }
        }
    }
}

fn done(job: &Job, count: u32) -> Result<usize, Broken> {
    let count = usize::try_from(count).map_err(|_| Broken)?;
    if count > job.track.tasks() {
        return Err(Broken);
    }
    job.track.done(count);
    Ok(count)
}

fn denied(job: &Job, index: u32, violation: crate::error::Violation) -> Result<End, Broken> {
    let index = usize::try_from(index).map_err(|_| Broken)?;
    if index >= job.track.tasks() {
        return Err(Broken);
    }
    Ok(End::Failed(TaskFailure::Denied { index, violation }))
}
