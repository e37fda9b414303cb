//! MurmurHash3, the 32-bit x86 variant (A. Appleby, public domain), over whole words.

/// The hash of three little-endian 32-bit words: what ns-3's ECMP hashes (`SwitchNode::EcmpHash`).
#[inline]
pub(crate) fn murmur3(words: [u32; 3], seed: u32) -> u32 {
    let mut hash = seed;
    for word in words {
        let k = word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
        hash = (hash ^ k).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    hash ^= 4 * words.len() as u32;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

/// A 64-bit mix (the finaliser of SplitMix64, Steele et al. 2014): counter-based random numbers.
#[inline]
pub(crate) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(id: u32) -> u32 {
        0x0b00_0001 + ((id / 256) << 16) + ((id % 256) << 8)
    }

    #[test]
    fn hashes_equal_those_of_ns3() {
        let data = [ip(0), ip(8), 10_000 | 100 << 16];
        assert_eq!(murmur3(data, 16), 0xbb46_3100);
        assert_eq!(murmur3(data, 24), 0x3e73_c56d);
        assert_eq!(murmur3(data, 25), 0xdb72_f0d3);
        assert_eq!(murmur3([ip(8), ip(0), 100 | 10_000 << 16], 20), 0x4f45_e89f);
    }
}
