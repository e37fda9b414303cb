//! Records: what they are in a file, how they are written, and how a file is read.

use crate::checksum::{CHECKSUM, checksum};
use crate::error::FormatError;
use crate::header::{Header, read_header};
use crate::words::{Words, pack, packed_len};
use serde::Deserialize;

/// Most words of a record: those of its key and of its value together.
pub const WORDS_MAX: usize = 1 << 24;

/// The payload's length before it.
const PREFIX: usize = 4;
/// A number of up to 32 bits as a varint of seven bits a byte.
const VARINT_MAX: usize = 5;

/// The payload of version 1, as it is read. [`write_record`] packs words where they belong instead.
#[derive(Deserialize)]
struct PayloadV1<'a> {
    key_words: u32,
    value_words: u32,
    #[serde(borrow)]
    key: &'a [u8],
    #[serde(borrow)]
    value: &'a [u8],
}

/// A record in the bytes of a file: sound, and borrowed from them.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    key: Words<'a>,
    value: Words<'a>,
    len: usize,
}

#[expect(clippy::len_without_is_empty, reason = "a record always has bytes: its length and its checksum")]
impl<'a> Record<'a> {
    /// The words of the key.
    pub fn key(&self) -> Words<'a> {
        self.key.clone()
    }

    /// The words of the value.
    pub fn value(&self) -> Words<'a> {
        self.value.clone()
    }

    /// How long the record is in the file, in bytes, with its length and its checksum.
    pub fn len(&self) -> usize {
        self.len
    }
}

/// Bytes of the parts of a record that has not been written yet.
struct Sizes {
    key: usize,
    value: usize,
    payload: usize,
}

impl Sizes {
    fn of(key: &[u64], value: &[u64]) -> Sizes {
        let sizes = Sizes { key: packed_len(key), value: packed_len(value), payload: 0 };
        let varints = [key.len(), value.len(), sizes.key, sizes.value].map(varint_len);
        Sizes { payload: varints.iter().sum::<usize>() + sizes.key + sizes.value, ..sizes }
    }

    fn record(&self) -> usize {
        PREFIX + self.payload + CHECKSUM
    }
}

/// Bytes of a number as a varint.
fn varint_len(number: usize) -> usize {
    let bits = usize::BITS - number.leading_zeros();
    bits.max(1).div_ceil(7) as usize
}

/// How long the record of `key` and `value` is in a file, in bytes.
pub fn record_len(key: &[u64], value: &[u64]) -> usize {
    Sizes::of(key, value).record()
}

/// Writes the record of `key` and `value` to the start of `out`; gives its length in bytes.
///
/// # Errors
/// [`FormatError::RecordTooLong`] if there are more than [`WORDS_MAX`] words, and [`FormatError::BufferTooSmall`] if
/// `out` is shorter than [`record_len`] says. Either way `out` is as before.
pub fn write_record(key: &[u64], value: &[u64], out: &mut [u8]) -> Result<usize, FormatError> {
    let words = key.len() + value.len();
    // So many words take less than 2^28 bytes: the length fits its field.
    if words > WORDS_MAX {
        return Err(FormatError::RecordTooLong { words });
    }
    let sizes = Sizes::of(key, value);
    let need = sizes.record();
    let Some(out) = out.get_mut(..need) else {
        return Err(FormatError::BufferTooSmall { need });
    };
    let (body, tail) = out.split_at_mut(need - CHECKSUM);
    let mut at = 0;
    let mut put = |piece: &[u8]| {
        body[at..at + piece.len()].copy_from_slice(piece);
        at += piece.len();
    };
    put(&(sizes.payload as u32).to_le_bytes());
    put_varint(key.len(), &mut put);
    put_varint(value.len(), &mut put);
    put_varint(sizes.key, &mut put);
    pack(key, &mut put);
    put_varint(sizes.value, &mut put);
    pack(value, &mut put);
    tail.copy_from_slice(&checksum(body));
    Ok(need)
}

/// Hands `number`, of at most 32 bits, to `put` as a varint.
fn put_varint(number: usize, mut put: impl FnMut(&[u8])) {
    let mut bytes = [0; VARINT_MAX];
    put(postcard::to_slice(&(number as u32), &mut bytes).expect("five bytes hold any number of 32 bits"));
}

/// Reads the record at the start of `bytes`; gives the bytes after it, too.
fn read_record(bytes: &[u8]) -> Result<(Record<'_>, &[u8]), FormatError> {
    let (prefix, tail) = bytes.split_first_chunk::<PREFIX>().ok_or(FormatError::Truncated)?;
    let length = u32::from_le_bytes(*prefix) as usize;
    let (payload, tail) = tail.split_at_checked(length).ok_or(FormatError::Truncated)?;
    let (expected, rest) = tail.split_first_chunk::<CHECKSUM>().ok_or(FormatError::Truncated)?;
    if checksum(&bytes[..PREFIX + length]) != *expected {
        return Err(FormatError::Corrupt);
    }
    let (key, value) = unpack(payload).ok_or(FormatError::Malformed)?;
    Ok((Record { key, value, len: PREFIX + length + CHECKSUM }, rest))
}

/// Key and value of a payload; `None` unless every byte of it is as the format says.
fn unpack(payload: &[u8]) -> Option<(Words<'_>, Words<'_>)> {
    let Ok((PayloadV1 { key_words, value_words, key, value }, [])) = postcard::take_from_bytes(payload) else {
        return None;
    };
    // A run of zeros takes two bytes in the file and much more in memory: the sum is bounded before any is unpacked.
    if key_words as u64 + value_words as u64 > WORDS_MAX as u64 {
        return None;
    }
    Some((Words::new(key, key_words as usize)?, Words::new(value, value_words as usize)?))
}

/// The records of a file, first to last.
///
/// It ends after the first error: what follows damage is never trusted, as the damage may be in a length.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    header: Header,
    /// Bytes not read yet; none after an error.
    rest: &'a [u8],
    sound: usize,
}

impl<'a> Reader<'a> {
    /// Reads the header of `bytes`, which are a whole file.
    ///
    /// # Errors
    /// As [`read_header`].
    pub fn new(bytes: &'a [u8]) -> Result<Reader<'a>, FormatError> {
        let (header, rest) = read_header(bytes)?;
        Ok(Reader { header, rest, sound: bytes.len() - rest.len() })
    }

    /// The header of the file.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How many bytes from the start of the file are sound, as far as it has been read. Once the iterator has ended
    /// this is where new records belong.
    pub fn sound_len(&self) -> usize {
        self.sound
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<Record<'a>, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = core::mem::take(&mut self.rest);
        if bytes.is_empty() {
            return None;
        }
        Some(read_record(bytes).map(|(record, rest)| {
            self.rest = rest;
            self.sound += record.len();
            record
        }))
    }
}

impl core::iter::FusedIterator for Reader<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record frame around any payload.
    fn framed(payload: &[u8]) -> ([u8; 128], usize) {
        let mut out = [0; 128];
        let end = PREFIX + payload.len();
        out[..PREFIX].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        out[PREFIX..end].copy_from_slice(payload);
        let tail = checksum(&out[..end]);
        out[end..end + CHECKSUM].copy_from_slice(&tail);
        (out, end + CHECKSUM)
    }

    fn read_payload(payload: &[u8]) -> Result<usize, FormatError> {
        let (bytes, length) = framed(payload);
        read_record(&bytes[..length]).map(|(record, rest)| {
            assert!(rest.is_empty() && record.len() == length);
            record.key().count_words() + record.value().count_words()
        })
    }

    #[test]
    fn a_payload_must_decode_fit_its_counts_and_be_used_up() {
        assert_eq!(read_payload(&[0, 0, 0, 0]), Ok(0));
        assert_eq!(read_payload(&[2, 4, 2, 7, 8, 2, 0xdf, 3]), Ok(6));
        let payloads: [&[u8]; 13] = [
            &[],
            &[2, 4, 2, 7, 8],
            // A byte too many.
            &[2, 4, 2, 7, 8, 2, 0xdf, 3, 0],
            // Counts one too small and one too large, of key and of value.
            &[1, 4, 2, 7, 8, 2, 0xdf, 3],
            &[3, 4, 2, 7, 8, 2, 0xdf, 3],
            &[2, 3, 2, 7, 8, 2, 0xdf, 3],
            &[2, 5, 2, 7, 8, 2, 0xdf, 3],
            // The key reaches beyond the payload.
            &[2, 4, 200, 7, 8, 2, 0xdf, 3],
            // A form that is cut off, though the count fits.
            &[2, 1, 2, 7, 0xf1, 1, 1],
            // Varints without end: in a count, and in a length.
            &[0x80; 20],
            &[1, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            // A count beyond its type, and two whose sum is.
            &[0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0],
            &[0xff, 0xff, 0xff, 0xff, 0x0f, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0],
        ];
        for payload in payloads {
            assert_eq!(read_payload(payload), Err(FormatError::Malformed), "{payload:x?}");
        }
    }

    #[test]
    fn a_length_beyond_the_file_is_truncation() {
        let (mut bytes, length) = framed(&[0, 0, 0, 0]);
        for longer in [5, 9, u32::MAX - 4, u32::MAX] {
            bytes[..PREFIX].copy_from_slice(&longer.to_le_bytes());
            assert_eq!(read_record(&bytes[..length]).err(), Some(FormatError::Truncated), "length {longer}");
        }
    }

    #[test]
    fn a_short_buffer_is_left_alone() {
        let (key, value) = ([1, 0, 0, 0, u64::MAX], [7 << 32 | 9; 20]);
        let need = record_len(&key, &value);
        for room in 0..need {
            let mut out = [0xa5; 128];
            assert_eq!(write_record(&key, &value, &mut out[..room]), Err(FormatError::BufferTooSmall { need }));
            assert_eq!(out, [0xa5; 128]);
        }
        assert_eq!(write_record(&key, &value, &mut [0; 128]), Ok(need));
    }

    #[test]
    fn varints_have_the_length_postcard_gives_them() {
        for number in (0..32).flat_map(|bit| [1 << bit, (1u64 << bit) - 1, u32::MAX as u64]) {
            let mut bytes = 0;
            put_varint(number as usize, |piece| bytes += piece.len());
            assert_eq!(varint_len(number as usize), bytes, "{number}");
        }
    }

    /// The example of SPEC.md, as the page shows it. A change here is a change of the format.
    #[test]
    fn the_example_of_the_specification_is_what_is_written() {
        let spec = include_str!("../SPEC.md");
        let block = spec.split("```example\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
        let mut shown = [0; 128];
        let mut length = 0;
        // Bytes stand before the bar, their meaning after it.
        for byte in block.lines().filter_map(|line| line.split('|').next()).flat_map(str::split_whitespace) {
            shown[length] = u8::from_str_radix(byte, 16).expect("bytes in hexadecimal");
            length += 1;
        }
        let (key, value) = ([5, 3 << 32 | 7, 0, 0, 0, 0, 1_000], [1.0f64.to_bits(), u64::MAX]);
        let mut written = [0; 128];
        assert_eq!(write_record(&key, &value, &mut written), Ok(length));
        assert_eq!(written, shown);
    }
}
