#!/bin/sh
# Fetch the third-party files under vendor/ from the npm registry (needs npm; not part of any build).
# Each package must have the hash that the registry gave for it when its version was chosen, and the
# files must be those of vendor/SHA256SUMS: `vendor.sh --new` writes that list anew, for new versions.
set -eu
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fetch() {  # fetch PACKAGE@VERSION SHA512, in base 64: unpacks into $scratch/package
    rm -rf "$scratch/package"
    archive=$scratch/$(cd "$scratch" && npm pack --silent "$1" | tail -n 1)
    found=$(openssl dgst -sha512 -binary "$archive" | openssl base64 -A)
    if [ "$found" != "$2" ]; then
        echo "$1 is not the package that was chosen: its SHA-512 is $found, not $2" >&2
        exit 1
    fi
    tar xzf "$archive" -C "$scratch"
}

fetch mathjax@3.2.2 \
    Bt+SSVU8eBG27zChVewOicYs7Xsdt40qm4+UpHyX7k0/O9NliPc+x77k1/FEsPsjKPZGJvtRZM1vO+geW0OhGw==
mkdir -p vendor/mathjax/output/chtml/fonts/woff-v2 vendor/mathjax/input/tex/extensions
cp "$scratch"/package/es5/tex-mml-chtml.js vendor/mathjax/
cp "$scratch"/package/es5/output/chtml/fonts/woff-v2/*.woff vendor/mathjax/output/chtml/fonts/woff-v2/
cp "$scratch"/package/es5/input/tex/extensions/*.js vendor/mathjax/input/tex/extensions/
rm vendor/mathjax/input/tex/extensions/all-packages.js

fetch requirejs@2.3.8 \
    7/cTSLOdYkNBNJcDMWf+luFvMriVm7eYxp4BcFCsAX0wF421Vyce5SXP17c+Jd5otXKGNehIonFlyQXSowL6Mw==
cp "$scratch"/package/require.js vendor/requirejs/

fetch @jupyter-widgets/html-manager@1.0.15 \
    5thBIV6ymNgmPVOHvzx+gGy8ZSKmSazhtGw4/c4xJDVzRhG9PTeQsRjF3FUTopvFi//SABeNz1yp47bCrJ3CQA==
cp "$scratch"/package/dist/embed-amd.js "$scratch"/package/dist/*.woff2 vendor/widgets/
# Its fonts lie beside it. It would ask for them at origin + path, and a page opened as a file has no
# origin, so name the whole address.
sed -i 's/`${\([a-z]*\)\.origin}${\1\.pathname}`/\1.href/g' vendor/widgets/embed-amd.js

fetch reveal.js@5.2.1 \
    r7//6mIM5p34hFiDMvYfXgyjXqGRta+/psd9YtytsgRlrpRzFv4RbH76TXd2qD+7ZPZEbpBDhdRhJaFgfQ7zNQ==
mkdir -p vendor/reveal
cp "$scratch"/package/dist/reveal.js "$scratch"/package/dist/reveal.css \
    "$scratch"/package/plugin/notes/notes.js vendor/reveal/

list() { (cd vendor && find . -type f ! -name SHA256SUMS | LC_ALL=C sort | xargs sha256sum); }
if [ "${1:-}" = --new ]; then list >vendor/SHA256SUMS; fi
list | diff vendor/SHA256SUMS - || { echo "vendor/ is not what vendor/SHA256SUMS lists" >&2; exit 1; }
