# shellcheck shell=bash disable=SC2154
# What ops/test installs and downloads. A source of packages that is slow or away ends here, and never fails a test. What is
# there already costs a second.

browser_packages=(chromium firefox-esr)
# Ubuntu's browsers have other names, and are snaps.
if grep -q '^ID=ubuntu' /etc/os-release; then browser_packages=(chromium-browser firefox); fi
media_packages=(
    gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad
    gstreamer1.0-plugins-ugly gstreamer1.0-libav gstreamer1.0-nice gir1.2-gstreamer-1.0
    gir1.2-gst-plugins-base-1.0 gir1.2-gst-plugins-bad-1.0 ffmpeg
)
# redis-check-rdb is the server under another name. The package redis-server would start one.
store_packages=(redis-tools)
# coturn has a client for the tests. libnss3-tools has certutil, which tells Firefox whom to trust.
network_packages=(coturn iproute2 nftables libnss3-tools)
# Pion is a client of the tests.
go_packages=(golang-go golang-github-pion-webrtc.v3-dev)
python_packages=(python3 python3-venv python3-gi python3-gst-1.0)
# The packages of ops/package are installed in a system of their own, and their pages, completions and unit are checked.
installation_packages=(dpkg-dev xz-utils mmdebstrap man-db systemd zsh fish)
# The template engine of Helm.
chart_packages=(golang-go golang-github-masterminds-sprig-dev golang-gopkg-yaml.v3-dev)
script_packages=(shellcheck)

# For what only root may do.
sudo=()
if ((EUID != 0)); then sudo=(sudo); fi

unprepared() { die "The preparation failed: $*"; }

# Whether a step was done for these files as they are: is_done STAMP FILE...
is_done() { [[ -f $1 && $(<"$1") == "$(sha256sum "${@:2}")" ]]; }
mark_done() { sha256sum "${@:2}" >"$1"; }

# The package starts a TURN server at its installation and at every boot, of which the tests use nothing. One that is installed
# already stays as it is.
keep_coturn_stopped() {
    [[ $(dpkg-query -W -f='${db:Status-Abbrev}' coturn 2>/dev/null) != ii* ]] || return 0
    "${sudo[@]}" mkdir -p /etc/systemd/system
    "${sudo[@]}" ln -sfn /dev/null /etc/systemd/system/coturn.service ||
        unprepared "the service coturn could not be masked."
}

prepare_python() {
    local stamp=.build-venv/requirements.sha256
    if [[ -x $python ]] && is_done "$stamp" Tests/Interop/requirements.txt; then return; fi
    # The system's Python, because it has the GStreamer bindings.
    if [[ ! -x $python ]]; then
        /usr/bin/python3 -m venv --system-site-packages .build-venv ||
            unprepared "the Python environment could not be created."
    fi
    "$python" -m pip install --quiet --disable-pip-version-check --retries 10 -r Tests/Interop/requirements.txt ||
        unprepared "the Python packages of Tests/Interop/requirements.txt could not be installed: see above."
    mark_done "$stamp" Tests/Interop/requirements.txt
}

# promtool checks metrics and alert rules. Its package would start a Prometheus at its installation, so it is unpacked only.
prepare_promtool() {
    [[ ! -x .build-peers/promtool ]] || return 0
    local folder
    folder=$(mktemp -d)
    # Without sources of packages that are up to date there is nothing to download.
    download_prometheus "$folder" || { "${sudo[@]}" apt-get "${apt_options[@]}" update -qq && download_prometheus "$folder"; } ||
        unprepared "the package prometheus could not be downloaded: see above."
    dpkg-deb -x "$folder"/prometheus_*.deb "$folder" || unprepared "the package prometheus could not be unpacked."
    install -D -m 755 "$folder/usr/bin/promtool" .build-peers/promtool
    rm -rf "$folder"
}
download_prometheus() {
    (cd "$1" && apt-get "${apt_options[@]}" -o APT::Sandbox::User=root download -qq prometheus)
}

# Downloads the sources of Swift packages: prepare_sources STAMP MANIFEST OPTION...
prepare_sources() {
    local stamp=$1 manifest=$2
    shift 2
    ! is_done "$stamp" "$manifest" || return 0
    swift package "$@" resolve || unprepared "the packages of $manifest could not be downloaded: see above."
    mark_done "$stamp" "$manifest"
}

# A minimal system for the tests of packages, with all that Nagare depends on in a folder that is its only source of packages:
# the tests install from it and download nothing.
prepare_minimal_system() {
    local folder=.build-root codename packages=(adduser ca-certificates) name
    # shellcheck source=/dev/null
    codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
    # They depend on the libraries that the program uses.
    for name in "${build_packages[@]}"; do if [[ $name == *-dev ]]; then packages+=("$name"); fi; done
    local made="$codename ${packages[*]}"
    [[ ! -d $folder/minimal || $(cat "$folder/made" 2>/dev/null) != "$made" ]] || return 0
    say "Making a minimal system for the tests of packages"
    "${sudo[@]}" rm -rf "$folder"
    mkdir -p "$folder"
    "${sudo[@]}" mmdebstrap --mode=root --variant=apt --quiet --skip=cleanup/apt/lists \
        --aptopt='Acquire::Retries "5"' "$codename" "$folder/new" ||
        unprepared "mmdebstrap could not make a minimal system: see above."
    fill_minimal_system "$PWD/$folder/new" "${packages[@]}"
    mv "$folder/new" "$folder/minimal"
    printf '%s\n' "$made" >"$folder/made"
}
fill_minimal_system() {
    local root=$1 archive=var/local/archive
    shift
    local apt=("${sudo[@]}" env DEBIAN_FRONTEND=noninteractive chroot "$root" apt-get "${apt_options[@]}" -qq)
    "${sudo[@]}" cp /etc/resolv.conf "$root/etc/resolv.conf"
    "${apt[@]}" install -y --no-install-recommends --download-only "$@" >&2 ||
        unprepared "the packages that Nagare depends on could not be downloaded: see above."
    "${sudo[@]}" bash -ec "
        mkdir -p '$root/$archive'
        mv '$root'/var/cache/apt/archives/*.deb '$root/$archive/'
        cd '$root/$archive'
        dpkg-scanpackages --multiversion . >Packages
        rm -rf '$root'/etc/apt/sources.list.d/* '$root'/var/lib/apt/lists/*
        echo 'deb [trusted=yes] file:/$archive ./' >'$root/etc/apt/sources.list'" ||
        unprepared "the packages that Nagare depends on could not be listed: see above."
    "${apt[@]}" update >&2 || unprepared "the packages of the minimal system could not be read: see above."
}

require_tools() {
    local tool element
    command -v chromium >/dev/null || command -v chromium-browser >/dev/null || unprepared "Chromium is not on the PATH."
    for tool in ffmpeg gst-inspect-1.0 turnutils_uclient ip nft nsenter certutil; do
        command -v "$tool" >/dev/null || unprepared "$tool is not on the PATH although its package is installed."
    done
    [[ -c /dev/net/tun ]] ||
        unprepared "there is no /dev/net/tun for the networks of the tests: load the kernel module tun."
    command -v firefox-esr >/dev/null || command -v firefox >/dev/null || unprepared "Firefox is not on the PATH."
    "$python" -c 'import gi; gi.require_version("GstWebRTC", "1.0"); from gi.repository import GstWebRTC' ||
        unprepared "GStreamer's WebRTC bindings cannot be imported."
    for element in webrtcbin nicesrc vp8enc vp9enc x264enc av1enc opusenc; do
        gst-inspect-1.0 "$element" >/dev/null 2>&1 || unprepared "GStreamer has no element $element."
    done
}

prepare_go() { ops/build-go "Tests/Interop/$1" ".build-peers/$2" || unprepared "the $3 could not be built: see above."; }

# What the layers of a run need: prepare LAYER...
prepare() {
    local layers=" $* " packages=() needs_swift="" needs_text="" needs_clients=""
    say "Preparing"
    if [[ $layers =~ \ (static|build|unit|simulation|store|scorecard|fuzz|program|hot-path)\  ]]; then needs_swift=1; fi
    if [[ $layers =~ \ (static|pages|interop|packages|soak)\  ]]; then needs_text=1; fi
    if [[ $layers =~ \ (pages|interop|packages|soak)\  ]]; then needs_clients=1; fi
    require_swift
    # The build begins as soon as it can: the rest of the preparation downloads.
    if [[ $needs_swift ]]; then
        install_packages "${build_packages[@]}"
        prepare_sources .build/resolved.sha256 Package.swift
        if [[ $layers == *" static "* && $layers == *" build "* ]]; then begin_build; fi
        packages+=("${store_packages[@]}")
    fi
    if [[ $layers == *" hot-path "* ]]; then packages+=("${bench_packages[@]}"); fi
    if [[ $needs_text ]]; then packages+=("${python_packages[@]}" "${chart_packages[@]}" "${script_packages[@]}"); fi
    if [[ $needs_clients ]]; then
        keep_coturn_stopped
        packages+=("${browser_packages[@]}" "${media_packages[@]}" "${network_packages[@]}" "${go_packages[@]}"
            "${installation_packages[@]}")
    fi
    install_packages "${packages[@]}"
    if [[ $layers == *" hot-path "* ]]; then
        NAGARE_CORES_ONLY=1 NAGARE_HOTPATH_ONLY=1 prepare_sources .build-benchmarks/resolved.sha256 Benchmarks/Package.swift \
            --package-path Benchmarks --scratch-path .build-benchmarks
    fi
    if [[ $needs_text ]]; then
        prepare_python
        prepare_promtool
        prepare_go chart chart "renderer of charts"
    fi
    if [[ $needs_clients ]]; then
        prepare_go pion pion-peer "client with Pion"
        prepare_minimal_system
        require_tools
    fi
}
