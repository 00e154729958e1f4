#!/bin/sh
# A RUSTC_WORKSPACE_WRAPPER: clippy compiles the crates of a workspace, and rustdoc reads its library. Warnings are
# errors, as in the Makefile's CLIPPY_ARGS.
#   checked.sh rustc --crate-name ...
set -eu

# Runs rustdoc with rustc's arguments, except those about its output.
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
