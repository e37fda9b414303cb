# What the scripts of this folder begin with. They are run from the root of the repository.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

host=$(rustc -vV | sed -n 's/^host: //p')
targets="${CARGO_TARGET_DIR:-$PWD/target}"
export CARGO_INCREMENTAL=0

# skip REASON: ends the script. In CI, which has all that is needed, that is a failure.
skip() {
    if [ -n "${CI:-}" ]; then
        printf 'FAILED: %s, and CI must not skip\n' "$1" >&2
        exit 1
    fi
    printf 'SKIPPED: %s\n' "$1"
    exit 0
}
