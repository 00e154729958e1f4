#!/bin/sh
# Puts files behind a copy of the program, which unpacks them where it is run: tools/dq-server/src/packed.rs has the
# form. The same files give the same bytes.
#   tools/release/pack.sh program output name=file...
set -eu
program=$1 output=$2 && shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for named; do
    file=${named#*=}
    echo "$(sha256sum <"$file" | cut -d ' ' -f 1) $(wc -c <"$file" | tr -d ' ') ${named%%=*}" >>"$work/manifest"
    cat "$file" >>"$work/files"
done
gzip -9n "$work/files"
mkdir -p "$(dirname "$output")"
{
    cat "$program" "$work/files.gz" "$work/manifest"
    printf 'dq-packed:%020d:%020d\n' "$(wc -c <"$work/files.gz")" "$(wc -c <"$work/manifest")"
} >"$work/packed"
chmod 755 "$work/packed"
mv "$work/packed" "$output"
