#!/bin/sh
# Prints the path of a Chromium: DQ_BROWSER, or an installed one; preferably the headless shell, which takes half of the
# processor time.
#   tools/testing/browser.sh
set -eu
for name in ${DQ_BROWSER:-chromium-headless-shell chromium chromium-browser google-chrome-stable google-chrome}; do
    command -v "$name" && exit 0
done
echo "No Chromium (chromium, chromium-browser, google-chrome), or DQ_BROWSER is none." >&2
exit 1
