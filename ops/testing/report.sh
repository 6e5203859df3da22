# shellcheck shell=bash disable=SC2154
# Runs the layers of ops/test one by one, counts their tests, and says how the run went.

passed=0
failed=0
failures=()

# The lines of a layer's output that name what failed, so that the end of a long run says it.
describe_failures() {
    local lines
    lines=$(grep -E '^(✘ Test |FAILED |ERROR |FAIL)|: error: |^error: ' "$2" | cut -c 1-600 | tail -n 40 || true)
    printf '%s:\n%s\n' "$1" "${lines:-$(tail -n 20 "$2")}"
}

# Runs a layer of tests: layer NAME COUNT COMMAND. Keeps the command's output in $results. COUNT is the function that reads
# the numbers of passed and failed tests from it. Fails when the layer failed.
layer() {
    local name=$1 count=$2 start=$SECONDS status=0
    shift 2
    local log="$results/$name.log"
    say "$name"
    "$@" 2>&1 | tee "$log" || status=${PIPESTATUS[0]}
    local layer_passed=0 layer_failed=0 verdict=ok
    $count "$log"
    # A runner can fail without reporting a failed test.
    if ((status != 0 && layer_failed == 0)); then layer_failed=1; fi
    passed=$((passed + layer_passed))
    failed=$((failed + layer_failed))
    if ((layer_failed)); then
        verdict=FAILED
        failures+=("$(describe_failures "$name" "$log")")
    fi
    add_time "$name" "$((SECONDS - start))" "$verdict" "$layer_passed" "$layer_failed"
    ((layer_failed == 0))
}

# For a layer without tests, which passes or fails as a whole.
count_none() { :; }

# "Test run with 30 tests in 4 suites passed after 1.2 seconds." A skipped test counts as failed.
count_swift() {
    local tests broken skipped
    tests=$(sed -n 's/.*Test run with \([0-9]*\) tests\{0,1\} .*/\1/p' "$1" | awk '{ sum += $1 } END { print sum + 0 }')
    broken=$(grep -cE '^✘ Test .* failed after ' "$1" || true)
    skipped=$(grep -cE '^(➜|↷|-) Test .* skipped' "$1" || true)
    # The summary of a failed run matches the pattern too.
    if grep -qE '^✘ Test run with .* failed after ' "$1"; then broken=$((broken - 1)); fi
    layer_failed=$((broken + skipped))
    layer_passed=$((tests - layer_failed))
    if ((tests == 0)); then layer_failed=1 layer_passed=0; fi
}

# "=== 2 failed, 30 passed, 1 skipped in 60.00s ===", once for each process. All but passed tests, warnings, and inconclusive
# runs, each of which has another run that decides, count as failed.
count_pytest() {
    count_selection "$1"
    local left
    left=$(sum_of_pytest "$1" deselected)
    layer_failed=$((layer_failed + left))
}
# The same of rows that an option selected.
count_selection() {
    layer_passed=$(sum_of_pytest "$1" passed)
    layer_failed=$(sum_of_pytest "$1" 'failed|errors?|skipped|xfailed|xpassed')
    if ((layer_passed + layer_failed == 0)); then layer_failed=1; fi
}
# grep fails without a match, which must not end the run.
sum_of_pytest() {
    { grep -E '^=+ .* in [0-9.]+s' "$1" | grep -oE "[0-9]+ ($2)\b" || true; } | awk '{ sum += $1 } END { print sum + 0 }'
}

# "12 passed, 0 failed": the last line of Tests/Fuzz/run.
count_fuzz() {
    local summary
    summary=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$1" | tail -n 1 || true)
    if [[ -z $summary ]]; then
        layer_failed=1
    else
        read -r layer_passed _ layer_failed _ <<<"$summary"
    fi
}

# ---- Where the time goes ----

start_report() {
    mkdir -p "$results"
    rm -f "$results"/*.log
    : >"$results/times.tsv"
}

add_time() { printf '%s\t%s\t%s\t%s\t%s\n' "$@" >>"$results/times.tsv"; }

# The end of every run that began: the totals, then what failed, so that a log of which only the end is kept still names it.
# Its last line is the total.
finish() {
    say "Totals (with the slowest rows: $results/times.md)"
    python3 ops/testing/times.py "$results" "$SECONDS"
    if ((failed)); then
        say "Failures (whole output: $results)"
        printf '%s\n' "${failures[@]}"
    fi
    printf '%d passed, %d failed\n' "$passed" "$failed"
    if ((failed)); then exit 1; fi
    exit 0
}
