#!/bin/sh
# Records the profile for the module for x86_64 and glibc, if this machine can run that module. An existing profile is
# kept.
#   tools/release/profile.sh target-folder triple      prints the profile's path, or nothing
set -eu
cd "$(dirname "$0")/../.."
target=$1 triple=$2
work=$target/release-build
profile=$work/$triple.profdata
[ "$triple" = x86_64-unknown-linux-gnu ] || exit 0
if [ ! -e "$profile" ]; then
    [ "$(uname -m)" = x86_64 ] || { echo "No profile for $triple: this machine cannot run its module" >&2; exit 0; }
    {
        echo "A module that counts, for the profile ..."
        tools/release/build.sh counting "$triple" "$work" "$work/counting/files"
        tools/release/train.sh "$work/counting/files/libdq.so" "$profile" "$target"
    } >&2
fi
echo "$profile"
