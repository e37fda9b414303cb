#!/usr/bin/env python3
"""Makes the sources of a toolchain's standard library from its documentation: library.py DOCUMENTED OTHER OUT

DOCUMENTED is the folder of source pages, OTHER a library of about the same age, which gives what the pages lack.
"""

import html
import re
import shutil
import sys
from pathlib import Path

# Written for a newer version of the crate hashbrown than OTHER has.
KEPT = "std/src/collections/hash/map.rs"

PATH = re.compile(r"Source of the Rust file `library/([^`]*)`")
CODE = re.compile(r'<pre class="rust"><code>(.*?)</code></pre>', re.DOTALL)
LINE_NUMBER = re.compile(r"<a href=#\d+ id=\d+ data-nosnippet>\d+</a>")
TAG = re.compile(r"<[^>]*>")


def main(documented: Path, other: Path, out: Path) -> None:
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(other, out, symlinks=True)
    pages = 0
    for page in documented.rglob("*.rs.html"):
        text = page.read_text()
        path = PATH.search(text)[1]
        if path == KEPT:
            continue
        code = html.unescape(TAG.sub("", LINE_NUMBER.sub("", CODE.search(text)[1])))
        file = out / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(code + "\n")
        pages += 1
    print(f"the standard library's sources: {pages} files from the documentation, the others from {other}")


main(*map(Path, sys.argv[1:]))
