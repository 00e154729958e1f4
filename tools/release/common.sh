# shellcheck shell=sh disable=SC2034 # to be sourced by those that pack, in the project's folder
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
maintainer=${MAINTAINER:-the dq authors <dq@localhost>}
summary='delay queue as a native data type of Redis and Valkey'
# The time of all files: that of the last commit.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
export SOURCE_DATE_EPOCH

about() {
    cat <<'END'
A module that gives Redis 7.0 and newer and Valkey 7.2 and newer a queue of
delayed jobs: with leases, retries, priorities, recurring jobs and groups.
It is loaded by a line in the server's configuration.
END
}

say() { # folder: shell that tells what to do now
    cat <<END
cat <<'MESSAGE'
To load dq, add this line to redis.conf or valkey.conf, and restart the server:

    loadmodule $1/libdq.so

A server that runs keeps the version that it has loaded until it is restarted.
MESSAGE
END
}

# The version of the C library that a module requires.
newest_glibc() {
    LC_ALL=C readelf -V "$1" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1 | cut -d _ -f 2
}

wants() { # library: whether the module is linked with it
    LC_ALL=C readelf -d "$module" | grep -q "(NEEDED).*\[$1\]"
}

put_files() { # root, folder of modules, another one that has a link to it, folder of documents; $program, if it is set, too
    mkdir -p "$1$2" "$1$3" "$1$4"
    install -m 755 "$module" "$1$2/libdq.so"
    ln -s "../../${2#/usr/lib*/}/libdq.so" "$1$3/libdq.so"
    install -m 644 LICENSE "$1$4/copyright"
    gzip -9n <CHANGELOG.md >"$1$4/changelog.gz"
    chmod 644 "$1$4/changelog.gz"
    [ -z "$program" ] || put_program "$1"
}

put_program() { # root
    mkdir -p "$1/usr/bin" "$1/usr/share/man/man1" "$1/usr/share/bash-completion/completions"
    install -m 755 "$program" "$1/usr/bin/dq"
    # One that runs here may be for another processor.
    "${HELPER:-$program}" man "$1/usr/share/man/man1"
    gzip -9n "$1"/usr/share/man/man1/*
    chmod 644 "$1"/usr/share/man/man1/*
    "${HELPER:-$program}" completions bash >"$1/usr/share/bash-completion/completions/dq"
}
