#!/bin/sh
# Runs a test's servers under valgrind's memcheck, and fails if a report involves the module.
#   tools/testing/valgrind.sh server module command...     command: the test; it is given DQ_SERVER and DQ_MODULE
set -eu
cd "$(dirname "$0")/../.."
server=$1 module=$2
shift 2
folder=$PWD/target/valgrind
rm -rf "$folder" && mkdir -p "$folder"

# The script that the tests start as their server. Threads of the server's own would only wait for each other.
{
    echo '#!/bin/sh'
    echo "[ \"\${1:-}\" != --version ] || exec '$server' --version"
    # jemalloc's functions are replaced like those of the C library.
    printf "exec valgrind --leak-check=full --show-leak-kinds=definite --num-callers=40 --error-limit=no \\\\\n"
    printf "    --soname-synonyms='somalloc=*jemalloc*' --suppressions='%s' --log-file='%s/%%p.log' \\\\\n" \
        "$PWD/tools/testing/valgrind.supp" "$folder"
    echo "    '$server' \"\$@\""
} >"$folder/${server##*/}"
chmod +x "$folder/${server##*/}"

DQ_SERVER=$folder/${server##*/} DQ_MODULE=$module "$@"
tools/testing/valgrind-check.sh "$folder"/*.log
