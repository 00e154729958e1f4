#!/bin/sh
# As RUSTC_WORKSPACE_WRAPPER: clippy compiles the crates of a workspace, and rustdoc reads its library; a warning is an error,
# as the Makefile's CLIPPY_ARGS say.
#   checked.sh rustc --crate-name ...
set -eu

# What rustc is asked for, but for what it shall write and where.
document() {
    before=$1
    shift
    for argument; do
        shift
        case "$before $argument" in
            *' --emit='* | *' --out-dir' | '--out-dir '*) ;;
            *) set -- "$@" "$argument" ;;
        esac
        before=$argument
    done
    rustdoc "$@" -D warnings --out-dir "$CARGO_TARGET_DIR/doc"
}

case " $* " in
    *' --test '*) ;;
    *' --crate-name dq_redis '*) document "$@" ;;
esac
exec clippy-driver "$@"
