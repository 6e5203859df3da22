# shellcheck shell=bash disable=SC2154
# What each layer of ops/test runs.

# Begins a command beside the layers: begin NAME COMMAND... Its output goes to $results/NAME.txt. A session of its own, so that
# it can be ended with all that it started.
declare -A begun=()
begin() {
    rm -f "$results/$1-status"
    : >"$results/$1.txt"
    # shellcheck disable=SC2016
    setsid bash -c '
        status=0
        "${@:2}" >"$1.txt" 2>&1 || status=$?
        echo "$status" >"$1-status"
    ' begin "$results/$1" "${@:2}" &
    begun[$1]=$!
}
# Prints its output until it ends, and returns its exit status. A layer runs in a subshell, which cannot wait for it.
follow() {
    tail --pid="${begun[$1]}" -n +1 -f "$results/$1.txt"
    return "$(<"$results/$1-status")"
}
# Runs a command when a process has ended: after PROCESS COMMAND...
after() {
    tail --pid="$1" -f /dev/null
    "${@:2}"
}
end_begun() {
    local process
    for process in "${begun[@]}"; do kill -- "-$process" 2>/dev/null || true; done
}

# The Swift files to lint: all, or in the fast loop those that are not committed as they are.
list_swift() {
    if [[ $mode == fast ]]; then
        git diff -z --name-only --diff-filter=d HEAD -- '*.swift'
        git ls-files -z --others --exclude-standard -- '*.swift'
    else
        # Folders that start with a dot contain the sources of dependencies.
        find . -mindepth 1 -name '.*' -prune -o -name '*.swift' -print0
    fi
}
lint() { list_swift | xargs -0 --no-run-if-empty swift format lint --strict --parallel --configuration .swift-format; }
check_scripts() {
    local scripts
    mapfile -t scripts < <(git grep --untracked -lE '^#!.*bash|^# shellcheck shell=bash' -- . ':!Tests/Interop')
    ((${#scripts[@]})) && shellcheck --external-sources "${scripts[@]}"
}
# A package of its own, which compiles in a quarter of a minute.
tidy() {
    swift test -c release -debug-info-format none --package-path Tests/TidyTests --scratch-path .build-tidy --disable-xctest
}
texts() { run_pytest text Tests/Interop -m static; }
# All of them run, so that one look shows all that is to correct.
run_static() {
    local is_broken=""
    layer format count_none lint || is_broken=1
    layer scripts count_none check_scripts || is_broken=1
    layer tidy count_swift tidy || is_broken=1
    layer text count_selection texts || is_broken=1
    layer loosened count_none ops/loosened || is_broken=1
    layer mutants count_none ops/mutate --check || is_broken=1
    [[ ! $is_broken ]]
}

# The manifest reads NAGARE_TESTING. The other layers must not see it: the benchmarks measure modules as users build them.
testable() { NAGARE_TESTING=1 "$@"; }
build_tests() {
    if [[ ${begun[build]:-} ]]; then follow build; else testable swift build "${release_options[@]}" --build-tests; fi
}
# Builds beside the layer before, which leaves a core free.
begin_build() { testable begin build swift build "${release_options[@]}" --build-tests; }
# The program as ops/package ships it. Only its link differs from the build of the tests.
build_program() { NAGARE_STATIC=1 testable swift build "${release_options[@]}" --product nagare; }

# Runs a layer of Swift tests: swift_tests OPTION... -- ARGUMENT... A filter among the arguments replaces those of the layer.
swift_tests() {
    local options=() own=()
    while [[ $1 != -- ]]; do
        options+=("$1" "$2")
        if [[ $1 != --filter ]]; then own+=("$1" "$2"); fi
        shift 2
    done
    shift
    if [[ " $* " == *" --filter"* ]]; then options=("${own[@]}"); fi
    testable swift test "${release_options[@]}" --skip-build --disable-xctest "${options[@]}" "$@"
}
# The layers below leave no thread to tests that wait for sockets and processes, so they run on their own.
unit() {
    local filter=()
    if [[ $unit_targets ]]; then filter=(--filter "^($unit_targets)\\."); fi
    # Fresh seeds are drawn where no clock of a socket goes on.
    NAGARE_FRESH_SECONDS=0 swift_tests --skip '^Scorecard\.' --skip '^Simulation\.' --skip RedisStoreTests "${filter[@]}" -- "$@"
}
# The seeded tests of rooms run here again, with fresh seeds.
simulation() {
    if [[ ${begun[simulation]:-} ]]; then
        follow simulation
    else
        swift_tests --filter '^Simulation\.' --filter '^RoomTests\.(Follow[A-Za-z]*PropertyTests|OwnChangeTests)/' -- "$@"
    fi
}
scorecard() { if [[ ${begun[scorecard]:-} ]]; then follow scorecard; else swift_tests --filter '^Scorecard\.' -- "$@"; fi; }
# A real server's clock goes on while simulations leave it no thread.
store() { swift_tests --filter RedisStoreTests -- "$@"; }

# Simulations draw fixed seeds, and fresh ones from the commit for some seconds. The same commit draws the same ones again.
choose_seeds() {
    local hash
    hash=$(git rev-parse HEAD) || die "There is no commit to draw seeds from."
    export NAGARE_FRESH_SEED=${NAGARE_FRESH_SEED:-$(printf '%u' "0x${hash:0:16}")}
    export NAGARE_FIXED_SEEDS=${NAGARE_FIXED_SEEDS:-$1} NAGARE_FRESH_SECONDS=${NAGARE_FRESH_SECONDS:-$2}
    say "Simulations: NAGARE_FIXED_SEEDS=$NAGARE_FIXED_SEEDS NAGARE_FRESH_SEED=$NAGARE_FRESH_SEED" \
        "NAGARE_FRESH_SECONDS=$NAGARE_FRESH_SECONDS"
}

# fuzz [SECONDS] [TARGET...] in any order.
fuzz() {
    local seconds=$fuzz_seconds targets=() word
    if [[ ${begun[fuzz]:-} ]]; then
        follow fuzz
        return
    fi
    for word in "$@"; do if [[ $word =~ ^[0-9]+$ ]]; then seconds=$word; else targets+=("$word"); fi; done
    Tests/Fuzz/run "$seconds" "${targets[@]}"
}

# What needs no quiet machine gets what the layers beside it leave of the processors. Linux gives each session an equal share of
# them (autogroups), so the session has to be nice, and not its threads alone. The hot path counts instructions and calls. Neither
# build can use objects of another: the fuzz targets have the sanitizers in them, and the measured modules no testability, and the
# package of the benchmarks.
begin_idle() {
    # shellcheck disable=SC2016
    begin "$1" bash -c '
        if [[ -w /proc/self/autogroup ]]; then echo 19 >/proc/self/autogroup; fi
        exec chrt --idle 0 "$@"
    ' idle "${@:2}"
}
begin_hot_path() { begin_idle hot-path Benchmarks/check; }
begin_fuzz_build() { begin_idle fuzz-build Tests/Fuzz/run --build; }
# The pictures of `interop` leave more than a core free, and would be disturbed by anything that does not give way. What no clock
# judges runs there, one after the other.
begin_fuzz() { begin_idle fuzz Tests/Fuzz/run "$fuzz_seconds"; }
begin_spare() {
    local name earlier=${begun[fuzz]}
    for name in simulation scorecard packages; do
        begin_idle "$name" bash -c 'source ops/test && "$@"' beside after "$earlier" "$name"
        earlier=${begun[$name]}
    done
}
hot_path() { follow hot-path; }

# Runs rows of the interop tests: run_pytest REPORT ARGUMENT...
run_pytest() {
    local report=$results/$1.xml binary
    shift
    binary=$(release_binary)
    # Ubuntu's browsers have other names than Debian's.
    NAGARE_CHROMIUM=$(command -v chromium || command -v chromium-browser) \
        NAGARE_FIREFOX=$(command -v firefox-esr || command -v firefox) NAGARE_BINARY="$binary" \
        "$python" -m pytest -p no:cacheprovider --color=no --durations=15 --junit-xml="$report" "$@"
}

# Rows in which no clock judges a picture: of the program, its packages and its pages, and of clusters and messages.
page_files=()
for name in certificates chart cluster cluster_crowd cluster_network cluster_redirects cluster_store consent \
    data_channels documentation feedback ffmpeg harness http installation lifecycle loosened module module_channel \
    monitoring operators operators_page page page_call page_form page_texts readme relay sora sora_layers tcp tokens tracing \
    turn turn_client verdicts; do
    page_files+=("Tests/Interop/test_$name.py")
done
# Rows of the packages and the container image. They share the packages that the first of them makes.
package_files=(Tests/Interop/test_container.py Tests/Interop/test_package.py)

# Two processes side by side fill two processors, and a third one has rows that wait. Three for the others are no faster, and beside
# `interop` no picture gets its time.
# The rows that `static` ran are left out.
pages() {
    if (($#)); then
        run_pytest pages-part "${chosen_pages[@]}" "$@"
        return
    fi
    local shares status=0 index files=() processes=()
    mapfile -t shares < <(python3 ops/testing/share.py "$results" "${chosen_pages[@]}")
    for index in "${!shares[@]}"; do
        read -ra files <<<"${shares[index]}"
        ((${#files[@]})) || continue
        printf 'Process %d: %s\n' "$((index + 1))" "${files[*]}"
        run_pytest "pages-$((index + 1))" -m 'not static' "${files[@]}" >"$results/pages-$((index + 1)).txt" 2>&1 &
        processes+=("$!")
    done
    for index in "${!processes[@]}"; do
        wait "${processes[index]}" || status=$?
        cat "$results/pages-$((index + 1)).txt"
    done
    return "$status"
}
packages() {
    if [[ ${begun[packages]:-} ]]; then
        follow packages
    elif (($#)); then
        run_pytest packages-part "${package_files[@]}" "$@"
    else
        run_pytest packages -m 'not static' "${package_files[@]}"
    fi
}
# With arguments, rows of all files: whoever names one need not know where it belongs.
interop() {
    local files=(Tests/Interop)
    if [[ " $* " == *" Tests/Interop"* ]]; then files=(); fi
    if (($#)); then
        run_pytest interop-part "${files[@]}" "$@"
    elif ((${#chosen_interop[@]})); then
        run_pytest interop "${chosen_interop[@]}"
    else
        run_pytest interop Tests/Interop "${page_files[@]/#/--ignore=}" "${package_files[@]/#/--ignore=}"
    fi
}

# soak [--times N] [ARGUMENT...]
soak() {
    local times=5
    if [[ ${1:-} == --times ]]; then
        [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || die "--times needs a number."
        times=$2
        shift 2
    fi
    run_pytest soak Tests/Interop --soak "$times" "$@"
}
