#!/bin/sh
# Make .venv-colab, the versions of Colab's image, with a Python that they have wheels for.
# dgbook is not installed in it, for tests run where its folder is: `make test` makes .venv at the
# same time, and two installations at once would write one dgbook.egg-info.
#   colab_lane.sh PYTHON: the interpreter to try first
set -eu
fits() { "$1" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; }

rm -rf .venv-colab
for python in "$1" python3.13 python3.12 python3.11; do
    if fits "$python"; then
        "$python" -m venv .venv-colab
        .venv-colab/bin/python -m pip install -q --no-compile --disable-pip-version-check \
            --require-hashes -r requirements-colab.txt
        touch .venv-colab/made
        exit
    fi
done
# The rest of the tests is worth running: tools/test_all.py reads this and says so in its table.
mkdir .venv-colab
echo "Colab's versions need Python 3.11 to 3.13; here is $("$1" --version)" >.venv-colab/unavailable
touch .venv-colab/made
