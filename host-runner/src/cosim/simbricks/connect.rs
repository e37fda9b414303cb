//! From a socket's path to a connection whose two sides have introduced themselves.
//!
//! All connections are made at once: two programs may each wait for the other on one socket and be waited for on
//! another.

use super::intro::{self, LONGEST, Rings, SyncMode, Terms};
use super::ring::{Consumer, Producer};
use super::shm::{self, Shm};
use crate::cosim::Fault;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use std::fs::{self, File};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

/// Time between two looks at sockets on which nothing has come.
const PAUSE: Duration = Duration::from_millis(1);

/// Descriptors that are taken from a message: one is expected.
const DESCRIPTORS: usize = 4;

/// The end of a connection that this program is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Side {
    /// It makes the socket, and the shared memory: at a path, or without a name.
    Listen {
        /// The socket.
        socket: PathBuf,
        /// The shared memory.
        memory: Option<PathBuf>,
    },
    /// It connects to the socket.
    Connect {
        /// The socket.
        socket: PathBuf,
    },
}

impl Side {
    fn socket(&self) -> &Path {
        let (Side::Listen { socket, .. } | Side::Connect { socket }) = self;
        socket
    }
}

/// A connection that stands.
pub(super) struct Connection {
    /// Tells when the peer is gone: nothing else is sent on it any more.
    pub(super) socket: UnixStream,
    /// What the peer sends.
    pub(super) incoming: Consumer,
    /// What it is sent.
    pub(super) outgoing: Producer,
    /// Whether time is kept together.
    pub(super) is_synchronised: bool,
}

/// A file that is removed in the end.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // If somebody else has removed it, that is as well.
        let _ = fs::remove_file(&self.0);
    }
}

/// How far a connection is.
enum Stage {
    Listening(UnixListener),
    Connecting,
    /// Ours has been sent; this much of the peer's has come.
    Introducing {
        socket: UnixStream,
        bytes: Vec<u8>,
        memory: Option<File>,
    },
    Open(Connection),
}

/// A connection on its way.
struct Opening<'o> {
    side: &'o Side,
    sync: SyncMode,
    stage: Stage,
    /// A listener's rings.
    memory: Option<File>,
    /// Files of a listener, which nobody needs once the connection stands.
    files: Vec<Temporary>,
}

/// Makes all connections.
///
/// # Errors
/// A socket or a file cannot be made or used, a peer does not introduce itself within `patience`, or what it says makes
/// no sense.
pub(super) fn connect_all(sides: &[Side], sync: SyncMode, patience: Duration) -> Result<Vec<Connection>, Fault> {
    let mut openings = sides.iter().map(|side| Opening::new(side, sync)).collect::<Result<Vec<_>, Fault>>()?;
    let deadline = Instant::now() + patience;
    loop {
        for opening in &mut openings {
            opening.go_on()?;
        }
        let Some(late) = openings.iter().find(|opening| !matches!(opening.stage, Stage::Open(_))) else { break };
        if Instant::now() >= deadline {
            return Err(late.timed_out(patience));
        }
        thread::sleep(PAUSE);
    }
    let open = |opening: Opening<'_>| match opening.stage {
        Stage::Open(connection) => Some(connection),
        _ => None,
    };
    Ok(openings.into_iter().filter_map(open).collect())
}

impl<'o> Opening<'o> {
    fn new(side: &'o Side, sync: SyncMode) -> Result<Opening<'o>, Fault> {
        let mut opening = Opening { side, sync, stage: Stage::Connecting, memory: None, files: Vec::new() };
        if let Side::Listen { socket, memory } = side {
            let file = shm::create(memory.as_deref(), Rings::DEFAULT.bytes());
            let name = memory.as_deref().unwrap_or(Path::new("shared memory"));
            opening.memory = Some(file.map_err(|error| Fault::Io(name.display().to_string(), error))?);
            opening.files.extend(memory.clone().map(Temporary));
            let listener = UnixListener::bind(socket).and_then(|listener| {
                listener.set_nonblocking(true)?;
                Ok(listener)
            });
            opening.stage = Stage::Listening(listener.map_err(|error| opening.io(error))?);
            opening.files.push(Temporary(socket.clone()));
        }
        Ok(opening)
    }

    /// Does what can be done without waiting.
    fn go_on(&mut self) -> Result<(), Fault> {
        if let Some(socket) = self.meet().map_err(|error| self.io(error))? {
            socket.set_nonblocking(true).map_err(|error| self.io(error))?;
            self.introduce(&socket).map_err(|error| match error.kind() {
                ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => self.gone(),
                _ => self.io(error),
            })?;
            self.stage = Stage::Introducing { socket, bytes: Vec::new(), memory: None };
        }
        if let Stage::Introducing { .. } = self.stage {
            self.listen_to_peer()?;
        }
        Ok(())
    }

    /// The socket to the peer, if it has just come to be.
    fn meet(&self) -> io::Result<Option<UnixStream>> {
        let met = match &self.stage {
            Stage::Listening(listener) => listener.accept().map(|(socket, _)| socket),
            Stage::Connecting => UnixStream::connect(self.side.socket()),
            Stage::Introducing { .. } | Stage::Open(_) => return Ok(None),
        };
        match met {
            Ok(socket) => Ok(Some(socket)),
            // Nobody is there yet.
            Err(error)
                if [ErrorKind::WouldBlock, ErrorKind::NotFound, ErrorKind::ConnectionRefused]
                    .contains(&error.kind()) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Sends our introduction; it is short enough to go at once.
    fn introduce(&self, socket: &UnixStream) -> io::Result<()> {
        let rings = self.memory.is_some().then_some(&Rings::DEFAULT);
        let bytes = intro::write(self.sync, rings);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors: Vec<_> = self.memory.iter().map(AsFd::as_fd).collect();
        if !descriptors.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(&descriptors));
        }
        let sent = sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)?;
        if sent == bytes.len() { Ok(()) } else { Err(ErrorKind::WriteZero.into()) }
    }

    /// Reads what has come of the peer's introduction; if it is all there, the connection stands.
    fn listen_to_peer(&mut self) -> Result<(), Fault> {
        let peer = |message: String| Fault::Peer(format!("{}: {message}", self.side.socket().display()));
        let Stage::Introducing { socket, bytes, memory } = &mut self.stage else { return Ok(()) };
        match receive(socket) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(_) => return Err(self.gone()),
            Ok((got, _)) if got.is_empty() => return Err(self.gone()),
            Ok((got, descriptors)) => {
                bytes.extend(got);
                for descriptor in descriptors {
                    if memory.replace(File::from(descriptor)).is_some() {
                        return Err(peer("the peer's introduction: it sends more than one file".into()));
                    }
                }
            }
        }
        let is_connecter = matches!(self.side, Side::Connect { .. });
        let terms = intro::read(bytes, is_connecter, self.sync).map_err(|bad| peer(bad.to_string()))?;
        let Some(terms) = terms else { return Ok(()) };
        let theirs = memory.take();
        if !is_connecter && theirs.is_some() {
            return Err(peer("the peer's introduction: a connecter sends no shared memory".into()));
        }
        let socket = socket.try_clone().map_err(|error| self.io(error))?;
        let connection = self.connection(socket, terms, theirs)?;
        self.stage = Stage::Open(connection);
        self.files.clear();
        Ok(())
    }

    fn connection(&self, socket: UnixStream, terms: Terms, theirs: Option<File>) -> Result<Connection, Fault> {
        let peer = |message: String| Fault::Peer(format!("{}: {message}", self.side.socket().display()));
        let (memory, rings) = match (&self.memory, theirs, terms.rings) {
            (Some(ours), _, _) => (Shm::map(ours, Rings::DEFAULT.bytes()), Rings::DEFAULT),
            (None, Some(file), Some(rings)) => {
                shm::keep_length(&file);
                (Shm::map(&file, rings.bytes()), rings)
            }
            (None, _, _) => return Err(peer("the peer's introduction: it comes without shared memory".into())),
        };
        let memory = Rc::new(memory.map_err(|error| peer(error.to_string()))?);
        let (ours, theirs) = match self.side {
            Side::Listen { .. } => (rings.to_connecter, rings.to_listener),
            Side::Connect { .. } => (rings.to_listener, rings.to_connecter),
        };
        Ok(Connection {
            socket,
            incoming: Consumer::new(memory.clone(), theirs),
            outgoing: Producer::new(memory, ours),
            is_synchronised: terms.is_synchronised,
        })
    }

    fn gone(&self) -> Fault {
        Fault::Peer(format!("{}: the peer is gone before it has introduced itself", self.side.socket().display()))
    }

    fn io(&self, error: io::Error) -> Fault {
        Fault::Io(self.side.socket().display().to_string(), error)
    }

    fn timed_out(&self, patience: Duration) -> Fault {
        let what = match &self.stage {
            Stage::Listening(_) => "nobody has connected",
            Stage::Connecting => "nobody listens",
            Stage::Introducing { .. } | Stage::Open(_) => "the peer has not introduced itself",
        };
        Fault::Peer(format!("{}: {what} after {} s", self.side.socket().display(), patience.as_secs_f64()))
    }
}

/// Bytes and descriptors that have come on a socket; no bytes: the other end is closed.
fn receive(socket: &UnixStream) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut bytes = vec![0; LONGEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    bytes.truncate(got.bytes);
    Ok((bytes, descriptors))
}
