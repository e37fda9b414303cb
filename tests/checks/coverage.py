#!/usr/bin/env python3
"""Line coverage of crates from a tracefile of llvm-cov: coverage.py LCOV MISSED CRATE[=LEAST]...

Unit tests are left out: they begin with `#[cfg(test)]` at the beginning of a line and end the file, or are a file of
their own. A line of a generic function is covered if any instance has run it. Fails if a crate has less than LEAST per
cent of its lines covered.
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


def files_of_tests(folder: Path) -> set[Path]:
    """The files that are modules for unit tests only, as `mod NAME;` in their parent says."""
    files = set()
    for path in folder.rglob("*.rs"):
        lines = path.read_text().splitlines()
        modules = (after for line, after in zip(lines, lines[1:]) if line == TESTS and after.endswith(";"))
        for module in modules:
            inside = path.parent if path.name in ("mod.rs", "lib.rs") else path.with_suffix("")
            files.add(inside / f"{module.removesuffix(';').split()[-1]}.rs")
    return files


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
    by_file, root, failures = counts(Path(tracefile)), Path.cwd(), []
    with open(missed, "w") as out:
        for crate in crates:
            crate, _, least = crate.partition("=")
            source, total, covered = root / crate / "src", 0, 0
            tests = files_of_tests(source)
            for path, lines in sorted(by_file.items()):
                if not path.is_relative_to(source) or path in tests:
                    continue
                end = lines_before_tests(path)
                own = {line: count for line, count in lines.items() if line <= end}
                total += len(own)
                covered += sum(count > 0 for count in own.values())
                code = path.read_text().splitlines()
                for line in (line for line, count in sorted(own.items()) if count == 0):
                    print(f"{path.relative_to(root)}:{line}: {code[line - 1].strip()}", file=out)
            share = 100 * covered / max(total, 1)
            print(f"{crate:10} {covered:6} of {total:6} lines, {share:5.1f} %")
            if least and share < float(least):
                failures.append(f"FAILED: {crate} has less than {least} %; not covered: {missed}")
    if failures:
        sys.exit("\n".join(failures))


main(*sys.argv[1:])
