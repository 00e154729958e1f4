# shellcheck shell=sh disable=SC2154 # the caller sets $apt
# Gets Debian's packages without changing the system's own: an apt with lists and a cache in the folder $apt.
# To be sourced. $architecture selects another architecture than this machine's.
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

private_apt() {
    apt-get -qq ${architecture:+-o "APT::Architecture=$architecture" -o "APT::Architectures=$architecture"} -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null \
        -o Dir::State="$apt/state" -o Dir::State::Status="$apt/status" -o Dir::Cache="$apt/cache" \
        -o APT::Default-Release= -o APT::Sandbox::User="$(id -un)" "$@"
}

# The mirror from which this system gets Debian's packages.
system_mirror() {
    apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep '/debian/*$' | head -n 1
}

prepare_apt() { # deb or deb-src, suites...
    [ ! -e "$apt/ready" ] || return 0
    if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
        echo "needs apt-get and dpkg-deb, so Debian or Ubuntu" >&2
        return 1
    fi
    [ -e $keyring ] || { echo "needs the package debian-archive-keyring" >&2; return 1; }
    mirror=${DEBIAN_MIRROR:-$(system_mirror)}
    [ -n "$mirror" ] || { echo "the system has no source of Debian's packages; set DEBIAN_MIRROR" >&2; return 1; }
    mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial"
    : >"$apt/status"
    archive=$1 && shift
    for suite; do
        echo "$archive [signed-by=$keyring] $mirror $suite main"
    done >"$apt/sources.list"
    private_apt update && : >"$apt/ready"
}
