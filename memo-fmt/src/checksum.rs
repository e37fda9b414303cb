//! The checksum of the header and of every record.

use crc::{CRC_32_ISO_HDLC, Crc, Table};

/// Bytes of a checksum.
pub(crate) const CHECKSUM: usize = 4;

/// How many tables of 1 KiB are looked up in: microcontrollers have other uses for their flash.
const TABLES: usize = if cfg!(target_pointer_width = "64") { 1 } else { 0 };

static CRC: Crc<u32, Table<TABLES>> = Crc::<u32, Table<TABLES>>::new(&CRC_32_ISO_HDLC);

/// The checksum over `bytes`, as it stands in a file.
pub(crate) fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    CRC.checksum(bytes).to_le_bytes()
}

#[cfg(test)]
mod tests {
    #[test]
    fn has_the_check_value_of_the_specification() {
        assert_eq!(super::checksum(b"123456789"), 0xcbf4_3926u32.to_le_bytes());
    }
}
