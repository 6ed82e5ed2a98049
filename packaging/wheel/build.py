"""Makes a Python wheel of what has been built: the command, the library and what programs compile and link with.

    python3 packaging/wheel/build.py BUILT FOLDER

Python's own modules are enough (the format: packaging.python.org, "Binary distribution format"), so it needs no network, and the same
build gives the same bytes: entries are sorted, and their time is SOURCE_DATE_EPOCH, the commit's.
"""

import base64
import csv
import hashlib
import io
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
ELF = ("bin/copytune", "lib/libcopytune.so")


def main(built, folder):
    cargo = (SOURCE / "Cargo.toml").read_text()
    version = fact("version")
    rust = re.search(r'^description = "(.*)"$', cargo, re.MULTILINE)[1]
    name = f"copytune-{version}"
    with tempfile.TemporaryDirectory() as stage:
        install = [SOURCE / "packaging/install", built, "/", "lib"]
        subprocess.run(install, check=True, env={**os.environ, "DESTDIR": stage, "STRIP": "1"})
        binaries = [Path(stage) / path for path in ELF]
        tag = "py3-none-manylinux_{}_{}_x86_64".format(*fact("glibc", *binaries).split(".")[:2])
        files = dict(contents(Path(stage), name))
    for source in sorted((HERE / "copytune").glob("*.py")):
        files[f"copytune/{source.name}"] = (source.read_bytes(), 0o644)
    for licence in ("LICENSE-APACHE", "LICENSE-MIT"):
        files[f"{name}.dist-info/licenses/{licence}"] = ((SOURCE / licence).read_bytes(), 0o644)
    files[f"{name}.dist-info/METADATA"] = (metadata(version, rust).encode(), 0o644)
    wheel = f"Wheel-Version: 1.0\nGenerator: copytune ({version})\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files[f"{name}.dist-info/WHEEL"] = (wheel.encode(), 0o644)
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{name}-{tag}.whl"
    aside = folder / f".{target.name}.new"
    aside.write_bytes(archive(files, f"{name}.dist-info/RECORD"))
    aside.replace(target)
    print(target)


def contents(stage, name):
    """What is installed, by its place in the wheel: commands are scripts, all else is data, below the environment's folder."""
    for file in stage.rglob("*"):
        place = file.relative_to(stage).as_posix()
        # Environments of Python have no modules, and the licences have a place of their own.
        if not file.is_file() or place.startswith(("share/modules/", "share/doc/")):
            continue
        kind = f"scripts/{file.name}" if place.startswith("bin/") else f"data/{place}"
        yield f"{name}.data/{kind}", (file.read_bytes(), 0o755 if place in ELF[:1] else 0o644)


def metadata(version, summary):
    head = f"""Metadata-Version: 2.1
Name: copytune
Version: {version}
Summary: {summary}
License: MIT OR Apache-2.0
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: System :: Distributed Computing
Requires-Python: >=3.8
Description-Content-Type: text/markdown
"""
    return head + "\n" + (HERE / "README.md").read_text()


def archive(files, record):
    """The bytes of the wheel: all files, and last the record of their hashes."""
    rows = io.StringIO()
    table = csv.writer(rows, lineterminator="\n")
    for place, (content, _) in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        table.writerow([place, f"sha256={digest}", len(content)])
    table.writerow([record, "", ""])
    # Times in archives begin in 1980.
    when = time.gmtime(max(int(fact("epoch")), 315532800))[:6]
    bytes_ = io.BytesIO()
    with zipfile.ZipFile(bytes_, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for place, (content, mode) in [*sorted(files.items()), (record, (rows.getvalue().encode(), 0o644))]:
            entry = zipfile.ZipInfo(place, when)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = (0o100000 | mode) << 16
            packed.writestr(entry, content)
    return bytes_.getvalue()


def fact(*words):
    command = [SOURCE / "packaging/facts", *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python3 packaging/wheel/build.py BUILT FOLDER")
    try:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"packaging/wheel/build.py: {error}")
