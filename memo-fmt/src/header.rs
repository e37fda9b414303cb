//! The header: the same frame in every format version, with a payload that depends on the version.

use crate::checksum::{CHECKSUM, checksum};
use crate::error::FormatError;
use serde::{Deserialize, Serialize};

/// The first bytes of every memo file.
pub const MAGIC: [u8; 8] = *b"\x89WHM\r\n\x1a\n";

/// The format version this crate reads and writes.
pub const FORMAT_VERSION: u16 = 1;

/// The longest header this crate writes, in bytes.
pub const HEADER_MAX: usize = PREFIX + PAYLOAD_MAX + CHECKSUM;

/// Magic, format version, payload length.
const PREFIX: usize = MAGIC.len() + 2 + 2;
/// A `u32` and a `u64` as varints of seven bits a byte.
const PAYLOAD_MAX: usize = 5 + 10;

/// What a memo file says about itself: its records hold only for a simulation with the same numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Which layout the file has: [`FORMAT_VERSION`].
    pub format_version: u16,
    /// Raised whenever the kernel behaves differently with the same models and input.
    pub kernel_version: u32,
    /// Hash over the name, version and configuration of every model.
    pub models: u64,
}

/// The payload of version 1. The format version is outside: it says how the payload is to be read.
#[derive(Serialize, Deserialize)]
struct PayloadV1 {
    kernel_version: u32,
    models: u64,
}

/// Writes `header` to the start of `out`; gives its length in bytes, at most [`HEADER_MAX`].
///
/// # Errors
/// [`FormatError::UnsupportedVersion`] if the format version is not [`FORMAT_VERSION`], and
/// [`FormatError::BufferTooSmall`] if `out` is too short. Either way `out` is as before.
pub fn write_header(header: &Header, out: &mut [u8]) -> Result<usize, FormatError> {
    if header.format_version != FORMAT_VERSION {
        return Err(FormatError::UnsupportedVersion { found: header.format_version });
    }
    let payload = PayloadV1 { kernel_version: header.kernel_version, models: header.models };
    // Encoded aside first: only then is the length known that the caller's buffer must have.
    let mut encoded = [0; PAYLOAD_MAX];
    let encoded = postcard::to_slice(&payload, &mut encoded).map_err(|_| FormatError::Malformed)?;

    let need = PREFIX + encoded.len() + CHECKSUM;
    let Some(out) = out.get_mut(..need) else {
        return Err(FormatError::BufferTooSmall { need });
    };
    let (body, tail) = out.split_at_mut(need - CHECKSUM);
    body[..8].copy_from_slice(&MAGIC);
    body[8..10].copy_from_slice(&header.format_version.to_le_bytes());
    body[10..PREFIX].copy_from_slice(&(encoded.len() as u16).to_le_bytes());
    body[PREFIX..].copy_from_slice(encoded);
    tail.copy_from_slice(&checksum(body));
    Ok(need)
}

/// Reads the header at the start of `bytes`; gives the bytes after it, too.
///
/// # Errors
/// Every [`FormatError`] except `BufferTooSmall` and `RecordTooLong`. Damage is looked for first: `UnsupportedVersion`
/// means a sound file of another version.
pub fn read_header(bytes: &[u8]) -> Result<(Header, &[u8]), FormatError> {
    let magic = &bytes[..bytes.len().min(MAGIC.len())];
    if !MAGIC.starts_with(magic) {
        return Err(FormatError::NotAMemoFile);
    }
    let &[_, _, _, _, _, _, _, _, v0, v1, n0, n1, ..] = bytes else {
        return Err(FormatError::Truncated);
    };
    let payload_end = PREFIX + u16::from_le_bytes([n0, n1]) as usize;
    let (Some(body), Some(tail)) = (bytes.get(..payload_end), bytes.get(payload_end..)) else {
        return Err(FormatError::Truncated);
    };
    let Some((expected, rest)) = tail.split_first_chunk::<CHECKSUM>() else {
        return Err(FormatError::Truncated);
    };
    if checksum(body) != *expected {
        return Err(FormatError::Corrupt);
    }
    let format_version = u16::from_le_bytes([v0, v1]);
    if format_version != FORMAT_VERSION {
        return Err(FormatError::UnsupportedVersion { found: format_version });
    }
    match postcard::take_from_bytes::<PayloadV1>(&body[PREFIX..]) {
        Ok((PayloadV1 { kernel_version, models }, [])) => Ok((Header { format_version, kernel_version, models }, rest)),
        _ => Err(FormatError::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: Header =
        Header { format_version: FORMAT_VERSION, kernel_version: 300, models: 0x0123_4567_89ab_cdef };

    /// Room for a header and some bytes after it.
    const ROOM: usize = HEADER_MAX + 64;

    fn written(header: &Header) -> ([u8; ROOM], usize) {
        let mut out = [0xa5; ROOM];
        let length = write_header(header, &mut out).unwrap();
        (out, length)
    }

    /// A header frame around any version and payload.
    fn framed(version: u16, payload: &[u8]) -> ([u8; ROOM], usize) {
        let mut out = [0; ROOM];
        let end = PREFIX + payload.len();
        out[..8].copy_from_slice(&MAGIC);
        out[8..10].copy_from_slice(&version.to_le_bytes());
        out[10..12].copy_from_slice(&(payload.len() as u16).to_le_bytes());
        out[12..end].copy_from_slice(payload);
        let tail = checksum(&out[..end]);
        out[end..end + 4].copy_from_slice(&tail);
        (out, end + 4)
    }

    #[test]
    fn reads_back_what_it_wrote_and_leaves_the_rest() {
        for kernel_version in [0, 1, 127, 128, u32::MAX] {
            for models in [0, 1, 1 << 32, u64::MAX] {
                let header = Header { format_version: FORMAT_VERSION, kernel_version, models };
                let (bytes, length) = written(&header);
                assert!(length <= HEADER_MAX);
                assert_eq!(read_header(&bytes), Ok((header, &bytes[length..])));
                assert_eq!(read_header(&bytes[..length]), Ok((header, &[][..])));
            }
        }
        let largest = Header { format_version: FORMAT_VERSION, kernel_version: u32::MAX, models: u64::MAX };
        assert_eq!(written(&largest).1, HEADER_MAX);
    }

    /// The bytes of SPEC.md. A change here is a change of the format.
    #[test]
    fn bytes_are_those_of_the_specification() {
        let (bytes, length) = written(&SAMPLE);
        #[rustfmt::skip]
        let expected = [
            0x89, 0x57, 0x48, 0x4d, 0x0d, 0x0a, 0x1a, 0x0a, // magic
            1, 0, // format version
            11, 0, // payload length
            0xac, 0x02, // 300 as a varint
            0xef, 0x9b, 0xaf, 0xcd, 0xf8, 0xac, 0xd1, 0x91, 0x01, // the models as a varint
        ];
        assert_eq!(bytes[..length - 4], expected);
        assert_eq!(bytes[length - 4..length], checksum(&expected));
    }

    #[test]
    fn every_truncation_is_reported() {
        let (bytes, length) = written(&SAMPLE);
        for end in 0..length {
            assert_eq!(read_header(&bytes[..end]), Err(FormatError::Truncated), "cut at {end}");
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let (bytes, length) = written(&SAMPLE);
        for bit in 0..length * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            // With bytes after the header and without: a flipped length reaches into them.
            for seen in [&damaged[..], &damaged[..length]] {
                let error = read_header(seen).expect_err("a flipped bit went unnoticed");
                let wanted = match bit / 8 {
                    0..8 => error == FormatError::NotAMemoFile,
                    10..12 => matches!(error, FormatError::Truncated | FormatError::Corrupt),
                    _ => error == FormatError::Corrupt,
                };
                assert!(wanted, "bit {bit}: {error:?}");
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic() {
        let mut random = 0x9e37_79b9_7f4a_7c15u64;
        // An interpreter is slow.
        let rounds = if cfg!(miri) { 200 } else { 20_000 };
        for round in 0..rounds {
            let (mut bytes, _) = written(&SAMPLE);
            // Half the rounds keep the magic, so that the later checks are reached.
            for byte in &mut bytes[if round % 2 == 0 { 0 } else { 8 }..] {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                *byte = random as u8;
            }
            let _ = read_header(&bytes[..random as usize % ROOM]);
        }
    }

    #[test]
    fn another_version_is_not_damage() {
        for found in [0, 2, 7, u16::MAX] {
            let (bytes, length) = framed(found, &[1, 2, 3, 4, 5]);
            assert_eq!(read_header(&bytes[..length]), Err(FormatError::UnsupportedVersion { found }));
        }
        let (bytes, length) = framed(7, &[1, 2, 3, 4, 5]);
        let mut damaged = bytes;
        damaged[13] ^= 1;
        assert_eq!(read_header(&damaged[..length]), Err(FormatError::Corrupt));
        let mut out = [0xa5; ROOM];
        let newer = Header { format_version: 7, ..SAMPLE };
        assert_eq!(write_header(&newer, &mut out), Err(FormatError::UnsupportedVersion { found: 7 }));
        assert_eq!(out, [0xa5; ROOM]);
    }

    #[test]
    fn a_payload_must_decode_and_be_used_up() {
        assert!(read_header(&framed(FORMAT_VERSION, &[1, 2]).0).is_ok());
        // Empty, one field, a byte too many, a varint without end, a number beyond its type.
        let payloads: [&[u8]; 5] = [&[], &[1], &[1, 2, 3], &[0x80; 15], &[0xff, 0xff, 0xff, 0xff, 0x7f, 0]];
        for payload in payloads {
            assert_eq!(read_header(&framed(FORMAT_VERSION, payload).0), Err(FormatError::Malformed), "{payload:?}");
        }
    }

    #[test]
    fn a_short_buffer_is_left_alone() {
        let (_, need) = written(&SAMPLE);
        for room in 0..need {
            let mut out = [0xa5; ROOM];
            assert_eq!(write_header(&SAMPLE, &mut out[..room]), Err(FormatError::BufferTooSmall { need }));
            assert_eq!(out, [0xa5; ROOM]);
        }
    }
}
