#!/bin/sh
# Lists the contents of a release, as CycloneDX: a file for the module, and one for the program.
#   tools/release/sbom.sh target-folder output-folder
set -eu
cd "$(dirname "$0")/../.."
target=$1 output=$2
CARGO=${CARGO:-cargo}
. tools/release/common.sh
PATH=$target/tools/bin:$PATH
"$CARGO" cyclonedx --version >/dev/null 2>&1 || "$CARGO" install -q --locked --root "$target/tools" cargo-cyclonedx

# The tool writes beside each Cargo.toml, and adds a random number.
listed() { # folder of Cargo.toml, its name, name of the list
    python3 - "$1/$2.cdx.json" "$output/$3-$version.cdx.json" "$PWD" <<'END'
import json, sys
found, kept, here = sys.argv[1:]
with open(found) as file:
    text = file.read().replace(here, "dq")
bom = json.loads(text)
bom.pop("serialNumber", None)
with open(kept, "w") as file:
    json.dump(bom, file, indent=1)
END
    echo "$3-$version.cdx.json"
}

trap 'rm -f redis-dq.cdx.json tools/dq*/*.cdx.json' EXIT
options='--format json --spec-version 1.5 --all --target all'
# shellcheck disable=SC2086 # a list of words
{
    "$CARGO" cyclonedx -q $options --manifest-path Cargo.toml
    "$CARGO" cyclonedx -q $options --manifest-path tools/Cargo.toml
}
listed . redis-dq dq
listed tools/dq dq dq-program
