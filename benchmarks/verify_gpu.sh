#!/usr/bin/env bash
# Everything that has to be seen on a machine with a GPU, in one go: build without a network, the
# whole test suite on the device, compute-sanitizer over every variant, the doctor, and the
# comparison with whatever peers are installed. Logs and results go to the folder named first.
#
#     GPUKERN_ARCHS=90a benchmarks/verify_gpu.sh results-folder
#
# The tests run in several processes (pytest-xdist), but for the one that fills the device.
# LIMIT: seconds that one step may take; TAIL: lines shown of the log of a step that failed.
set -uo pipefail
results=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")/.."
failed=0

step() {
    local name=$1
    shift
    local start=$SECONDS
    if timeout -k 5 "${LIMIT:-420}" "$@" >"$results/$name.log" 2>&1; then
        echo "$name: ok, $((SECONDS - start)) s: $(tail -n 1 "$results/$name.log")"
    else
        echo "$name: FAILED ($?), $((SECONDS - start)) s; the end of its log:"
        tail -n "${TAIL:-25}" "$results/$name.log"
        failed=1
    fi
}

export GPUKERN_DEVICE=cuda COLUMNS=160 PYTHONUNBUFFERED=1
step build python -m pip install --no-build-isolation --no-deps --force-reinstall .
[ $failed = 0 ] || exit 1
export PATH="$(python -c "import sysconfig; print(sysconfig.get_path('scripts'))"):$PATH"
pytest="python -m pytest -q -p no:cacheprovider -p no:benchmark"
step tests $pytest --numprocesses=10 --dist=loadfile tests
step full $pytest tests/test_transfers.py::test_a_device_that_is_full
step doctor gpukern doctor
step info gpukern info
step memcheck compute-sanitizer --tool memcheck --error-exitcode 9 python tests/every_variant.py
step memcheck-users compute-sanitizer --tool memcheck --error-exitcode 9 python tests/every_variant.py users
step racecheck compute-sanitizer --tool racecheck --error-exitcode 9 python tests/every_variant.py
step compare gpukern compare --json "$results/compare.json"
step adds gpukern bench adds --json "$results/adds.json"
exit $failed
