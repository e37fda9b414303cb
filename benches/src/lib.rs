//! Shared scenarios.
