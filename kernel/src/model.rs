//! Identity of models, for reports and memo keys.

/// Names a model with everything that makes it behave as it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ModelId {
    /// The field's name of the algorithm.
    pub name: &'static str,
    /// Raised whenever the same configuration behaves differently than before.
    pub version: u32,
    /// Hash of the configuration.
    pub config: u64,
}

/// A 64-bit FNV-1a hash over the fields of a configuration.
#[derive(Clone, Copy, Debug)]
pub struct ConfigHash(u64);

impl ConfigHash {
    /// The hash of nothing.
    pub const fn new() -> ConfigHash {
        ConfigHash(0xcbf2_9ce4_8422_2325)
    }

    /// With one more field.
    pub const fn with(self, field: u64) -> ConfigHash {
        let (mut hash, bytes) = (self.0, field.to_le_bytes());
        let mut i = 0;
        while i < bytes.len() {
            hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
            i += 1;
        }
        ConfigHash(hash)
    }

    /// The hash.
    pub const fn finish(self) -> u64 {
        self.0
    }
}

impl Default for ConfigHash {
    fn default() -> Self {
        Self::new()
    }
}
