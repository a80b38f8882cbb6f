#!/bin/bash
# Which lines of csrc the suite reaches on this machine: a copy of the sources is built with gcov's
# counters, the suite runs on it, and a table is printed, a file a row. docs/testing.md has the last
# one. By hand, from anywhere; a run takes as long as the suite, and half as long again.
#
#   tests/coverage.sh FOLDER [arguments of pytest]
#
# FOLDER holds the copy and its virtual environment, and may be used again. What a build reads from
# the environment (setup.py) holds here too: CUDA_HOME, GPUKERN_ARCHS.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mkdir -p "$1" && cd "$1" && pwd)
tree=$folder/tree
python=$folder/venv/bin/python
shift

mkdir -p "$tree/build"
find "$tree" -mindepth 1 -maxdepth 1 ! -name build -exec rm -r {} +
(cd "$root" && git ls-files -z --cached --others --exclude-standard | tar --null -cT -) |
    tar -xC "$tree"
# Kernels that are compiled already need not be once more. The engine is, with counters.
if [ -d "$root/build/gpukern" ] && [ ! -d "$tree/build/gpukern" ]; then
    cp -r "$root/build/gpukern" "$tree/build/"
fi
find "$tree/build" \( -name 'csrc-*' -o -name 'cuda-sim-*' ! -name '*bodies*' -o -name 'images.o*' \
    -o -name '*.gc[dn][ao]' -o -name last \) -prune -exec rm -r {} +
[ -x "$python" ] || "${PYTHON:-python3}" -m venv "$folder/venv"

gcc -c -fPIC "$tree/tests/counted/dump.c" -o "$folder/dump.o"
cd "$tree"
# Not isolated, since gcov wants to see NumPy's headers afterwards. -O0: each line keeps counters of
# its own.
"$python" -m pip install -q "setuptools>=77" "numpy>=2.0"
CFLAGS="--coverage -fprofile-update=atomic -O0" LDFLAGS="--coverage $folder/dump.o" \
    "$python" -m pip install -q --no-build-isolation ".[test,coverage]"

status=0
PYTHONPATH=$tree/tests/counted "$python" -m pytest -q --every=1 "$@" || status=$?
"$python" -m gcovr -r . --filter csrc/ --object-directory build/gpukern \
    --gcov-suspicious-hits-threshold=0 --txt -
exit $status
