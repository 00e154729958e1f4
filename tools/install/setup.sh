#!/bin/sh
# Installs what is missing on this machine with its package manager; does nothing if nothing is missing.
#   tools/install/setup.sh [--check] need...     needs: cargo cc libclang server cli fetch lint python node node20 go java rust
#   beanstalkd prometheus source fuzz valgrind profdata browser packers emulator php ruby
# With --check it only says, by its exit code, whether anything is missing.
set -eu
cd "$(dirname "$0")/../.."
CARGO=${CARGO:-cargo}

# --- what is installed

any() { # one of these files exists
    for file; do [ ! -e "$file" ] || return 0; done
    return 1
}

# The version that Cargo.toml requires, and the installed one, such as 1.88.
rust_wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
rust_found() { "$CARGO" --version 2>/dev/null | sed -n 's/^cargo \([0-9]*\.[0-9]*\).*/\1/p'; }

has_cargo() {
    version=$(rust_found)
    [ -n "$version" ] || return 1
    [ "${version%.*}" -gt "${rust_wanted%.*}" ] ||
        { [ "${version%.*}" = "${rust_wanted%.*}" ] && [ "${version#*.}" -ge "${rust_wanted#*.}" ]; }
}

has_cc() { # with the C library's headers, and able to link
    printf '#include <stdio.h>\nint main(void) { return 0; }\n' |
        cc -x c - -o /dev/null 2>/dev/null
}

has_libclang() { # bindgen loads the library, and that needs its own headers
    [ -z "${LIBCLANG_PATH:-}" ] || return 0
    [ "$(uname)" != Darwin ] || { xcode-select -p >/dev/null 2>&1; return; }
    any /usr/lib*/libclang.so* /usr/lib*/*/libclang.so* /usr/lib*/*/*/libclang.so* \
        /usr/lib*/*/libclang-[0-9]*.so* /usr/lib*/*/*/libclang-[0-9]*.so* \
        /usr/local/lib*/libclang.so* /usr/local/llvm*/lib*/libclang.so* || return 1
    any /usr/lib*/clang/*/include/stddef.h /usr/lib*/llvm*/lib*/clang/*/include/stddef.h \
        /usr/local/lib*/clang/*/include/stddef.h /usr/local/llvm*/lib*/clang/*/include/stddef.h
}

has_server() { tools/servers/server.sh >/dev/null 2>&1; }

has_cli() { # beside the server, or in PATH
    server=$(tools/servers/server.sh 2>/dev/null) && any "${server%/*}/redis-cli" "${server%/*}/valkey-cli" && return 0
    command -v redis-cli >/dev/null || command -v valkey-cli >/dev/null
}

has_fetch() { # to get packages of PyPI
    command -v python3 >/dev/null || return 1
    python3 -c 'import pip' 2>/dev/null || python3 -c 'import ensurepip, venv' 2>/dev/null
}

has_lint() { "$CARGO" clippy --version >/dev/null 2>&1 && "$CARGO" fmt --version >/dev/null 2>&1; }

has_python() { # with redis-py, or able to get it (see python.sh)
    command -v python3 >/dev/null || return 1
    python3 -c 'import redis' 2>/dev/null || target/venv/bin/python -c 'import pip' 2>/dev/null ||
        python3 -c 'import ensurepip, venv' 2>/dev/null
}

# The languages of the examples besides Python: what builds and runs them.

has_node() { # 18 or newer
    command -v npm >/dev/null && node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)' 2>/dev/null
}

has_node20() { # what the worker library needs
    command -v npm >/dev/null && node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null
}

has_go() { go version 2>/dev/null | grep -Eq ' go(1\.(19|[2-9][0-9])|[2-9])'; }

has_java() { # 17 or newer
    command -v mvn >/dev/null && javac -version 2>&1 | grep -Eq 'javac (1[7-9]|[2-9][0-9])'
}

has_rust() { has_cargo; }

has_php() { command -v php >/dev/null; }

has_ruby() { ruby -e 'require "webrick"' 2>/dev/null; }

has_beanstalkd() { command -v beanstalkd >/dev/null; }

has_prometheus() { # with promtool and redis_exporter
    command -v promtool >/dev/null && command -v prometheus >/dev/null || return 1
    command -v redis_exporter >/dev/null || command -v prometheus-redis-exporter >/dev/null
}

has_source() { # to build Debian's source packages
    command -v dpkg-source >/dev/null && command -v make >/dev/null
}

has_fuzz() { # a nightly compiler, cargo-fuzz (here or in target/tools), and C++ for libFuzzer
    "$CARGO" +nightly --version >/dev/null 2>&1 && command -v c++ >/dev/null &&
        { [ -x target/tools/bin/cargo-fuzz ] || command -v cargo-fuzz >/dev/null; }
}

has_valgrind() { command -v valgrind >/dev/null; }

has_profdata() { tools/release/llvm.sh profdata >/dev/null 2>&1; } # what reads the compiler's profiles

has_packers() { # of .deb and .rpm
    for program in dpkg-deb rpmbuild cpio readelf; do command -v $program >/dev/null || return 1; done
}

has_emulator() { command -v qemu-aarch64-static >/dev/null && command -v musl-gcc >/dev/null; } # and a second C library

has_browser() { tools/testing/browser.sh >/dev/null 2>&1; }


# --- how to install it

manager() {
    for name in apt-get dnf pacman brew; do
        command -v $name >/dev/null && echo $name && return 0
    done
    echo none
}

# The server on Debian and Ubuntu: redis-tools has its program, too (see server.sh). The package redis-server would only
# add a system service, which occupies port 6379, where `make run` listens, now and after every boot.
packages() { # need -> packages
    case $manager:$1 in
        apt-get:php) echo php-cli ;;
        dnf:php) echo php-cli php-json ;;
        pacman:php | brew:php | brew:ruby) echo "$1" ;;
        apt-get:ruby | dnf:ruby | pacman:ruby) echo ruby ruby-webrick ;;
        apt-get:cc) echo gcc libc6-dev ;;
        apt-get:libclang) echo libclang-dev ;;
        apt-get:server | apt-get:cli) echo redis-tools ;;
        apt-get:source) echo dpkg-dev make debian-archive-keyring ;;
        apt-get:fuzz) command -v c++ >/dev/null || echo g++ ;;
        dnf:fuzz) command -v c++ >/dev/null || echo gcc-c++ ;;
        apt-get:packers) echo dpkg rpm rpm2cpio cpio binutils ;;
        apt-get:emulator) echo qemu-user-static musl-tools ;;
        dnf:packers) echo dpkg rpm-build cpio binutils ;;
        apt-get:browser) echo chromium-headless-shell ;;
        dnf:browser | pacman:browser) echo chromium ;;
        apt-get:valgrind | dnf:valgrind | pacman:valgrind) echo valgrind ;;
        apt-get:fetch | apt-get:python) echo python3 python3-venv ca-certificates ;;
        apt-get:node | apt-get:node20) # NodeSource's package has npm in it, and bears no other
            if apt-cache show --no-all-versions nodejs 2>/dev/null | grep -q '^Provides:.*npm'; then
                echo nodejs
            else
                echo nodejs npm
            fi
            ;;
        apt-get:prometheus) echo prometheus prometheus-redis-exporter ;;
        dnf:node | dnf:node20 | pacman:node | pacman:node20) echo nodejs npm ;;
        apt-get:go) echo golang-go ca-certificates ;;
        apt-get:java) echo default-jdk-headless maven ;;
        dnf:go) echo golang ;;
        pacman:go) echo go ;;
        dnf:java) echo java-devel maven ;;
        pacman:java) echo jdk-openjdk maven ;;
        brew:node | brew:go) echo "$1" ;;
        brew:node20) echo node ;;
        brew:java) echo openjdk maven ;;
        *:beanstalkd) [ "$manager" = pacman ] || echo beanstalkd ;; # not among Arch's own
        dnf:cc) echo gcc glibc-devel ;;
        dnf:libclang) echo clang-devel ;;
        dnf:server | dnf:cli) if dnf -q info valkey >/dev/null 2>&1; then echo valkey; else echo redis; fi ;;
        pacman:cc) echo gcc ;;
        pacman:libclang) echo clang ;;
        pacman:server | pacman:cli) echo valkey ;;
        brew:server | brew:cli) echo redis ;;
        dnf:python | brew:python | dnf:fetch | brew:fetch) echo python3 ;;
        pacman:python | pacman:fetch) echo python ;;
    esac
}

xcode=
[ "$(uname)" != Darwin ] || xcode=" (xcode-select --install)"

by_hand() { # need -> what to get where no package manager helps
    case $1 in
        node) echo "node 18 or newer, and npm" ;;
        node20) echo "node 20 or newer, and npm" ;;
        go) echo "go 1.19 or newer" ;;
        java) echo "a JDK, 17 or newer, and mvn (Maven)" ;;
        php) echo "php, as a program for terminals" ;;
        ruby) echo "ruby with webrick" ;;
        cc) echo "a C compiler, with the C library's headers$xcode" ;;
        libclang) echo "libclang, with its headers$xcode" ;;
        server) echo "redis-server 7.0 or newer, or valkey-server 7.2 or newer" ;;
        cli) echo "redis-cli or valkey-cli" ;;
        fetch) echo "python3 with pip, or with its venv module" ;;
        python) echo "python3 with its venv module, or with redis-py" ;;
        beanstalkd) echo "beanstalkd: see https://beanstalkd.github.io" ;;
        prometheus) echo "prometheus with promtool, and redis_exporter" ;;
        source) echo "Debian or Ubuntu, with dpkg-dev and make" ;;
        fuzz) echo "a nightly toolchain (rustup toolchain install nightly), cargo-fuzz, a C++ compiler" ;;
        valgrind) echo "valgrind" ;;
        profdata) echo "llvm-profdata of the compiler's LLVM (rustup component add llvm-tools)" ;;
        browser) echo "Chromium or Chrome" ;;
        packers) echo "dpkg-deb, rpmbuild, cpio and readelf, as Debian and Fedora have them" ;;
        emulator) echo "qemu-user-static and musl-tools, as Debian has them" ;;
        lint) echo "clippy and rustfmt (rustup component add clippy rustfmt)" ;;
    esac
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        shown "$@"
    elif [ -n "$terminal" ]; then
        shown sudo "$@"
    else # nobody is there to type a password
        shown sudo -n "$@"
    fi
}

# Shows a command and its main steps. Its whole output is in the log, as it would hide the one line that matters.
shown() {
    echo "  $*"
    { "$@" 2>&1 && : >"$log.ok"; } | tee -a "$log" | sed -n 's/^\(Need to get\|Setting up\|Installing\)/    &/p'
    [ -e "$log.ok" ] && rm "$log.ok"
}

install() { # packages...
    if [ "$manager" != brew ] && [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
        echo "Neither root nor sudo. As root: $manager install $*" >>"$log"
        return 1
    fi
    case $manager in
        apt-get)
            # A package source may fail as long as the others have what is needed.
            as_root apt-get -qq -o DPkg::Lock::Timeout=300 update || true
            as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends \
                -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 install "$@"
            ;;
        dnf) as_root dnf -q -y install "$@" ;;
        pacman) as_root pacman -S --noconfirm --needed "$@" ;;
        brew) shown brew install "$@" ;;
        none) echo "No package manager that is known here (apt-get, dnf, pacman, brew)." >>"$log"; return 1 ;;
    esac
}

missing() { # of the needs given
    for need; do "has_$need" || echo "$need"; done
}

# Checked before anything is installed: package managers seldom have a cargo that is new enough.
stop_without_cargo() {
    version=$(rust_found)
    way="curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh     (and open a new terminal)"
    ! command -v rustup >/dev/null || way='rustup update stable'
    if [ -n "$version" ]; then here="$CARGO is $version"; else here="there is none here"; fi
    echo "dq needs cargo $rust_wanted or newer; $here. To get it: $way" >&2
    exit 1
}

fail() { # need...
    echo "This is missing; please install it by hand, then try again:" >&2
    for need; do echo "  - $(by_hand "$need")" >&2; done
    exit 1
}

terminal=
[ ! -t 0 ] || terminal=yes

check=
[ "${1:-}" != --check ] || { check=yes && shift; }
lacking=$(missing "$@" | tr '\n' ' ')
lacking=${lacking% }
[ -z "$check" ] || { [ -z "$lacking" ]; exit; }
[ -n "$lacking" ] || exit 0
case " $lacking " in *' cargo '* | *' rust '*) stop_without_cargo ;; esac
# A server that was named is not replaced by another one.
case " $lacking " in *' server '*) [ -z "${DQ_SERVER:-}" ] || { tools/servers/server.sh; exit 1; } ;; esac

log=target/setup.log
mkdir -p target
: >"$log"
manager=$(manager)
wanted=$(for need in $lacking; do packages "$need"; done | tr '\n' ' ')
if [ -n "${wanted% }" ]; then
    echo "Missing: $lacking. Installing with $manager: ${wanted% }"
    # shellcheck disable=SC2086 # a list of words
    install $wanted </dev/null || {
        echo "$manager could not install all of it. All that was said is in $log; at last:" >&2
        echo "  $(tail -n 1 "$log")" >&2
    }
fi
for need in $lacking; do
    if [ "$need" = lint ] && command -v rustup >/dev/null; then
        rustup component add clippy rustfmt || true
    fi
    if [ "$need" = profdata ] && command -v rustup >/dev/null; then
        rustup component add llvm-tools || true
    fi
    if [ "$need" = fuzz ]; then
        "$CARGO" +nightly --version >/dev/null 2>&1 || ! command -v rustup >/dev/null ||
            rustup toolchain install nightly --profile minimal || true
        "$CARGO" install -q --locked --root target/tools cargo-fuzz || true
    fi
    # The system's server may be too old (Redis 6 on Ubuntu 22.04), or missing.
    if [ "$need" = server ] && ! has_server; then
        echo "Getting a server into target/servers ..."
        if ! has_fetch && ! tools/install/setup.sh fetch; then
            echo "So no server could be fetched." >&2
        elif ! tools/servers/servers.sh valkey-9.1 >target/servers.log 2>&1; then
            echo "That failed. All that was said is in target/servers.log; at last:" >&2
            tail -n 3 target/servers.log | sed 's/^/  /' >&2
        fi
    fi
done
lacking=$(missing "$@")
# shellcheck disable=SC2086 # a list of words
[ -z "$lacking" ] || fail $lacking
