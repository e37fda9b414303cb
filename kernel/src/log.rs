//! Logging, once for the crate: to `defmt` on microcontrollers, to `log` on hosts, else to nowhere.
//!
//! Messages take integers only, so that both back ends accept them. Nothing on a packet's path logs.

macro_rules! debug {
    ($($arg:tt)*) => {{
        #[cfg(feature = "defmt")]
        defmt::debug!($($arg)*);
        #[cfg(all(feature = "log", not(feature = "defmt")))]
        log::debug!($($arg)*);
        // Without a back end the arguments still count as used.
        #[cfg(not(any(feature = "defmt", feature = "log")))]
        let _ = core::format_args!($($arg)*);
    }};
}

pub(crate) use debug;
