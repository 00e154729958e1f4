#!/bin/sh
# Checks the spelling of all texts, the form and links of the documents, Dockerfiles, and Kubernetes manifests.
#   tools/lint/docs.sh python      with codespell, pymarkdown and hadolint beside it
set -eu
cd "$(dirname "$0")/../.."
python=$1
failed=

# Only files written by hand: no lock files, no other formats, and no deliberate mistakes.
git ls-files -z --cached --others --exclude-standard -- \
    '*.md' '*.rs' '*.py' '*.sh' '*.js' '*.mjs' '*.ts' '*.go' '*.java' '*.toml' '*.yaml' '*.yml' '*.html' '*.mk' Makefile .ci \
    ':!clients/node/test/mistakes.test.mjs' ':!clients/python/tests/test_mistakes.py' ':!clients/python/tests/typed/program.py' |
    xargs -0 "$python" -m codespell_lib --ignore-words tools/lint/words.txt || failed=yes
git ls-files -z --cached --others --exclude-standard -- '*.md' |
    xargs -0 "$python" -m pymarkdown --config tools/lint/markdown.json scan || failed=yes
git ls-files -z --cached --others --exclude-standard -- '*.md' | xargs -0 "$python" -B tools/lint/links.py || failed=yes
"${python%/*}/hadolint" tools/docker/Dockerfile tools/docker/release.Dockerfile || failed=yes
"$python" -B tools/lint/kubernetes.py examples/kubernetes/*.yaml || failed=yes
"$python" -B -m unittest discover -s tools/lint || failed=yes
[ -z "$failed" ]
