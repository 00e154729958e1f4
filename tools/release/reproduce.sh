#!/bin/sh
# Builds once more, in a copy of the sources in another folder, without earlier output; the bytes must be the same.
#   tools/release/reproduce.sh target-folder module|program triple
set -eu
cd "$(dirname "$0")/../.."
target=$1 what=$2 triple=$3
one=$target/release-build/once other=$target/release-build/twice
copy=$(mktemp -d "${TMPDIR:-/tmp}/dq copy.XXXXXX")
trap 'rm -rf "$copy"' EXIT
rm -rf "$one" "$other"

# Two recorded profiles always differ, so both builds use the same one.
profile=
[ "$what" != module ] || profile=$(tools/release/profile.sh "$target" "$triple")
echo "Here ..."
tools/release/build.sh "$what" "$triple" "$target/release-build" "$one" "$profile"
echo "In $copy ..."
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$copy"
if [ -n "$profile" ]; then
    mkdir -p "$copy/target/release-build"
    cp "$profile" "$copy/target/release-build/"
    profile=$copy/target/release-build/${profile##*/}
fi
"$copy/tools/release/build.sh" "$what" "$triple" "$copy/target/release-build" "$copy/target/files" "$profile"
mv "$copy/target/files" "$other"

failed=
for file in "$one"/*; do
    if cmp "$file" "$other/${file##*/}"; then
        echo "${file##*/}: the same $(stat -c %s "$file") bytes"
    else
        failed=yes
    fi
done
[ -z "$failed" ]
