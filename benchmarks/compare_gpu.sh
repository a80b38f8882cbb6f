#!/usr/bin/env bash
# The whole comparison on a machine with a GPU: `gpukern compare all` twice, whether the two runs
# agree, JSON, Markdown and plots, every matmul beside cuBLAS, our times beside those of ncu, the
# tests that plant cheaters, and the notebooks with their outputs. The folder named first gets
# summary.txt, and all the rest packed into results.tar.gz.
#
#     GPUKERN_ARCHS=90a benchmarks/compare_gpu.sh results-folder
#
# No step takes longer than its limit. The plots and notebooks need matplotlib. GPUKERN_COMMIT: the
# commit to record where this is no checkout. BUILD=no leaves out the build. EXTRA: what pip has to
# install beforehand without a network (wheels or an sdist), if anything.
set -uo pipefail
target=$(mkdir -p "$1" && cd "$1" && pwd)
results=$(mktemp -d)
cd "$(dirname "$0")/.."
summary=$results/summary.txt
: >"$summary"
failed=0

step() {
    local limit=$1 name=$2 start=$SECONDS status
    shift 2
    timeout -k 5 "$limit" "$@" >"$results/$name.log" 2>&1
    status=$?
    if [ $status = 0 ]; then
        echo "$name: ok, $((SECONDS - start)) s: $(tail -n 1 "$results/$name.log")" | tee -a "$summary"
    else
        echo "$name: FAILED ($status), $((SECONDS - start)) s; the end of its log:" | tee -a "$summary"
        tail -n "${TAIL:-12}" "$results/$name.log" | tee -a "$summary"
        failed=1
    fi
}

finish() {
    cp "$summary" "$target/summary.txt"
    tar -C "$results" -czf "$target/results.tar.gz" .
    rm -rf "$results"
    echo "==== summary"
    cut -c 1-300 "$target/summary.txt"
    exit $failed
}

export GPUKERN_DEVICE=cuda COLUMNS=170 PYTHONUNBUFFERED=1
GPUKERN_COMMIT=${GPUKERN_COMMIT:-$(git describe --always --dirty --abbrev=12 2>/dev/null)}
export GPUKERN_COMMIT
[ -n "${EXTRA:-}" ] && step 90 extra python -m pip install --no-index --no-deps $EXTRA
if [ "${BUILD:-yes}" = yes ]; then
    step 120 build python -m pip install --no-build-isolation --no-deps --force-reinstall .
    [ $failed = 0 ] || finish
fi
PATH="$(python -c "import sysconfig; print(sysconfig.get_path('scripts'))"):$PATH"
export PATH
step 215 compare gpukern compare all --seed 1 --json "$results/compare.json" \
    --markdown "$results/compare.md" --plot "$results/compare.png"
step 60 ncu python benchmarks/against_ncu.py "$results/ncu.json"
step 60 cheaters python -m pytest -q -p no:cacheprovider \
    tests/test_compare.py tests/test_cheaters.py tests/test_results.py
step 180 notebooks python notebooks/execute.py --record --into "$results/notebooks" notebooks/*.ipynb
step 215 again gpukern compare all --seed 1 --save "$results/again.json" \
    --against "$results/compare.json"
step 130 matmul python benchmarks/matmul.py "$results/matmul.json" "$results/matmul.md"
step 30 agree python benchmarks/agree.py "$results/compare.json" "$results/again.json"
finish
