//! Programs and packages that are not part of the toolchain, and that some tests need.
//!
//! Without one of them its test says so and does nothing else. In CI, which installs them all, that is a failure: a
//! green run there has skipped nothing.

use std::process::{Command, Stdio};

/// Whether a component is there; if not, says that `test` is skipped, and why.
///
/// # Panics
/// If it is not there and the environment has `CI`.
pub fn is_there(test: &str, component: &str, found: bool) -> bool {
    if !found {
        assert!(std::env::var_os("CI").is_none(), "{test}: {component} is missing, and CI must not skip");
        println!("SKIPPED {test}: {component} is not installed; .ci/run installs it");
    }
    found
}

/// Whether a program can be started; `arguments` make it end at once, such as `--version`.
pub fn starts(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
