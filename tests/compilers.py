"""Scripts that stand for compilers: they write down that they were called, and need no CUDA."""

from __future__ import annotations

import os

SUPPORTED = ["75", "80", "86", "89", "90", "90a", "100", "100a", "120"]


def write_script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def fake_toolkit(root, version="13.0.88", headers=True):
    """A toolkit whose nvcc answers questions and turns a source into a file of the same bytes."""
    include = root / "include"
    include.mkdir(parents=True, exist_ok=True)
    for name in ("cuda.h", "cuda_fp16.h") if headers else ():
        (include / name).write_text("")
    write_script(root / "bin" / "fatbinary", FAKE_FATBINARY)
    release = version.rpartition(".")[0]
    listed = ",".join(f"'compute_{name}'" for name in SUPPORTED)
    return write_script(
        root / "bin" / "nvcc",
        f"""case "$*" in
            *--version*) echo "Cuda compilation tools, release {release}, V{version}" ;;
            *--dryrun*) echo '#$ INCLUDES="-I{include}"' ;;
            *--help*) echo "Allowed values: {listed},'sm_75','lto_90'." ;;
            *) {FAKE_COMPILE} ;;
        esac""",
    )


# Copies the last source to what follows -o, and writes a dependency file where one is asked for.
FAKE_COMPILE = """
    if [ "$1" = --version ]; then echo "cc 1.0"; exit; fi
    echo "$@" >> "${FAKE_LOG:-/dev/null}"
    while [ $# -gt 0 ]; do
        case "$1" in
            -MF) report=$2; shift ;;
            -o) output=$2; shift ;;
            *.cu|*.ptx|*.c|*.cpp|*.S) source=$1 ;;
        esac
        shift
    done
    if grep -q '#error' "$source" /dev/null; then echo "$source:1: error: as planted"; exit 1; fi
    cat "$source" > "$output"
    [ -z "$report" ] || echo "$output: $source \\\\
      ${FAKE_HEADER:-} /usr/include/stdio.h" > "$report"
"""


# Writes the names of its images.
FAKE_FATBINARY = """
    for word in "$@"; do
        case "$word" in
            --create=*) output=${word#--create=} ;;
            --image3=*) images="$images${word#--image3=} " ;;
        esac
    done
    echo "fatbinary $output $images" >> "${FAKE_LOG:-/dev/null}"
    echo "$images" > "$output"
"""


def edit(path, text):
    path.write_text(text)
    os.utime(path, (2, 2))


def sentence(raised):
    """What a build ended in."""
    text = str(raised.value)
    assert text.startswith("gpukern: ") and "\n" not in text
    return text
