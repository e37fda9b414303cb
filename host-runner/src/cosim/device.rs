//! Network interfaces of Linux as places where frames come in and go out: TAP devices and packet sockets.
//!
//! The `unsafe` code is here: three calls to the system for which no crate has a safe function. Each gets a pointer to
//! a struct that lives as long as the call, and its size.
#![allow(unsafe_code)]

use nix::errno::Errno;
use nix::libc;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::unistd::{read, write};
use std::ffi::c_int;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

/// Where TAP devices are made.
const TUN: &str = "/dev/net/tun";

/// The longest frame that is read; longer ones are cut.
const LONGEST: usize = 1 << 16;

/// `TUNSETIFF` of `linux/if_tun.h`.
mod tun {
    use nix::libc;
    nix::ioctl_write_ptr_bad!(set_iff, libc::TUNSETIFF, libc::ifreq);
}

/// An open device. It is closed when this is dropped; a TAP device that has been made here is gone then.
pub(crate) struct Device {
    name: String,
    fd: OwnedFd,
    buffer: Vec<u8>,
}

impl Device {
    /// Opens a TAP device, and makes it if there is none of that name.
    ///
    /// # Errors
    /// Those of the system: no permission, another kind of interface has the name, it is in use.
    pub(crate) fn tap(name: &str) -> io::Result<Device> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
        let file = options.open(TUN).map_err(|error| io::Error::new(error.kind(), format!("{TUN}: {error}")))?;
        let mut request = interface_request(name)?;
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as i16;
        // SAFETY: the file is open, and the request is what this call reads and writes.
        match unsafe { tun::set_iff(file.as_raw_fd(), &request) } {
            Err(Errno::EINVAL) => {
                return Err(io::Error::other("there is an interface of that name, and it is no TAP device"));
            }
            done => done?,
        };
        Ok(Device::new(name, file.into()))
    }

    /// Opens a packet socket on an interface that is there: all frames that come in by it, whoever they are for.
    ///
    /// # Errors
    /// Those of the system: no permission, no such interface.
    pub(crate) fn interface(name: &str) -> io::Result<Device> {
        let index = if_nametoindex(name)?;
        // Without a protocol it hears nothing before it is bound.
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let fd = socket(AddressFamily::Packet, SockType::Raw, flags, None)?;
        // What this machine itself sends by the interface is for the other side, not for the fabric.
        set_option(&fd, libc::PACKET_IGNORE_OUTGOING, &1)?;
        let everything = libc::packet_mreq {
            mr_ifindex: index as c_int,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set_option(&fd, libc::PACKET_ADD_MEMBERSHIP, &everything)?;
        bind(&fd, index)?;
        Ok(Device::new(name, fd))
    }

    fn new(name: &str, fd: OwnedFd) -> Device {
        Device { name: name.to_owned(), fd, buffer: vec![0; LONGEST] }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The next frame that has come in, if there is one.
    ///
    /// # Errors
    /// Those of the system, if the device is gone.
    pub(crate) fn receive(&mut self) -> io::Result<Option<&[u8]>> {
        loop {
            match read(&self.fd, &mut self.buffer) {
                Ok(bytes) => return Ok(Some(&self.buffer[..bytes])),
                // It is down, and may come up again.
                Err(Errno::EAGAIN | Errno::ENETDOWN) => return Ok(None),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sends a frame; false if the device does not take it now, because it is down or full, or ever: it is too long.
    ///
    /// # Errors
    /// Those of the system, if the device is gone.
    pub(crate) fn send(&mut self, frame: &[u8]) -> io::Result<bool> {
        loop {
            match write(&self.fd, frame) {
                Ok(_) => return Ok(true),
                // A TAP device that is down says EIO.
                Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::ENETDOWN | Errno::EIO | Errno::EMSGSIZE) => {
                    return Ok(false);
                }
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A request about an interface, all else zero.
fn interface_request(name: &str) -> io::Result<libc::ifreq> {
    let unfit = name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains(['\0', '/', '%']);
    if unfit {
        let message = format!("a name of an interface has 1 to {} bytes, none of them / or %", libc::IFNAMSIZ - 1);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    // SAFETY: the struct is of integers, arrays of them, and a union of such and of pointers: zero is a value of all.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

/// Sets an option of a packet socket.
fn set_option<T>(socket: &OwnedFd, option: c_int, value: &T) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    let value = std::ptr::from_ref(value).cast();
    // SAFETY: the socket is open; the value lives as long as the call, and has that size.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, option, value, size) };
    Errno::result(done).map(drop).map_err(io::Error::from)
}

/// Binds a packet socket to all frames of an interface.
fn bind(socket: &OwnedFd, interface: u32) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: interface as c_int,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let size = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the socket is open; the address lives as long as the call, and has that size.
    let done = unsafe { libc::bind(socket.as_raw_fd(), std::ptr::from_ref(&address).cast(), size) };
    Errno::result(done).map(drop).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_interface_can_have_are_refused() {
        for name in ["", "sixteen-bytes-xx", "a/b", "tap%d"] {
            assert_eq!(Device::tap(name).err().map(|e| e.kind()), Some(io::ErrorKind::InvalidInput), "{name}");
        }
    }
}
