# The sources of the nightly toolchain's standard library, in $library.
#
# They are its component rust-src. Where that cannot be had: the documentation that comes with the toolchain shows every
# file of core, alloc and std; what it leaves out (build files, vendored crates, unwinding) is that of Debian's package
# rust-web-src, which is of about the same age.
nightly() {
    rustup run nightly "$@"
}

nightly rustc --version > /dev/null 2>&1 || skip "there is no nightly toolchain"
sysroot=$(nightly rustc --print sysroot)
library="$sysroot/lib/rustlib/src/rust/library"
if [ ! -d "$library" ]; then
    documented="$sysroot/share/doc/rust/html/src"
    debian=$(find /usr/src -maxdepth 2 -path '/usr/src/rustc-*/library' | sort -V | tail -n 1)
    if [ ! -d "$documented" ] || [ -z "$debian" ]; then
        skip "the nightly toolchain has neither rust-src, nor its documentation beside rust-web-src"
    fi
    library="$targets/library"
    python3 tests/checks/library.py "$documented" "$debian" "$library"
fi
