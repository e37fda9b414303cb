//! Host runner.
