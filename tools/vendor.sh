#!/bin/sh
# Fetch the third-party files under vendor/ from the npm registry (needs npm; not part of any build).
set -eu
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fetch() {  # fetch PACKAGE@VERSION: unpacks into $scratch/package
    rm -rf "$scratch/package"
    (cd "$scratch" && npm pack --silent "$1" | tail -n 1 | xargs tar xzf)
}

fetch mathjax@3.2.2
mkdir -p vendor/mathjax/output/chtml/fonts/woff-v2 vendor/mathjax/input/tex/extensions
cp "$scratch"/package/es5/tex-mml-chtml.js vendor/mathjax/
cp "$scratch"/package/es5/output/chtml/fonts/woff-v2/*.woff vendor/mathjax/output/chtml/fonts/woff-v2/
cp "$scratch"/package/es5/input/tex/extensions/*.js vendor/mathjax/input/tex/extensions/
rm vendor/mathjax/input/tex/extensions/all-packages.js

fetch requirejs@2.3.8
cp "$scratch"/package/require.js vendor/requirejs/

fetch @jupyter-widgets/html-manager@1.0.15
cp "$scratch"/package/dist/embed-amd.js "$scratch"/package/dist/*.woff2 vendor/widgets/
# Its fonts lie beside it. It would ask for them at origin + path, and a page opened as a file has no
# origin, so name the whole address.
sed -i 's/`${\([a-z]*\)\.origin}${\1\.pathname}`/\1.href/g' vendor/widgets/embed-amd.js
