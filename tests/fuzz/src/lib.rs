//! What fuzz targets share.

#[cfg(feature = "host")]
pub mod host;
