#!/usr/bin/env python3
"""Line coverage of crates from a tracefile of llvm-cov: coverage.py LCOV MISSED CRATE...

Unit tests are left out: they begin with `#[cfg(test)]` at the beginning of a line and end the file, or are a file of
their own. A line of a generic function is covered if any instance has run it.
"""

import sys
from collections import defaultdict
from pathlib import Path

TESTS = "#[cfg(test)]"


def lines_before_tests(path: Path) -> int:
    """How many lines come before the unit tests of a file."""
    lines = path.read_text().splitlines()
    starts = (i for i, line in enumerate(lines) if line == TESTS and lines[i + 1].startswith("mod tests {"))
    return next(starts, len(lines))


def counts(tracefile: Path) -> dict[Path, dict[int, int]]:
    """How often each line with code was run, by file."""
    by_file: dict[Path, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    path = Path()
    for record in tracefile.read_text().splitlines():
        if record.startswith("SF:"):
            path = Path(record[3:])
        elif record.startswith("DA:"):
            line, count = record[3:].split(",")[:2]
            by_file[path][int(line)] += int(count)
    return by_file


def main(tracefile: str, missed: str, *crates: str) -> None:
    by_file, root = counts(Path(tracefile)), Path.cwd()
    with open(missed, "w") as out:
        for crate in crates:
            total = covered = 0
            for path, lines in sorted(by_file.items()):
                is_test = path.name in ("tests.rs", "testing.rs")
                if not path.is_relative_to(root / crate / "src") or is_test:
                    continue
                end = lines_before_tests(path)
                own = {line: count for line, count in lines.items() if line <= end}
                total += len(own)
                covered += sum(count > 0 for count in own.values())
                code = path.read_text().splitlines()
                for line in (line for line, count in sorted(own.items()) if count == 0):
                    print(f"{path.relative_to(root)}:{line}: {code[line - 1].strip()}", file=out)
            print(f"{crate:10} {100 * covered / total:5.1f} % of {total} lines")


main(*sys.argv[1:])
