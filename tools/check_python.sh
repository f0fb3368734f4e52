#!/bin/sh
# Say in one sentence what is wrong with PYTHON, or nothing: check_python.sh PYTHON
python=$1
command -v "$python" >/dev/null || {
    echo "There is no $python here; install Python 3.11 or newer, or name one: make PYTHON=python3.12"
    exit 1
}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "$("$python" --version) is too old: the book needs 3.11 or newer. Name one: make PYTHON=python3.12"
    exit 1
}
"$python" -c 'import venv, ensurepip' 2>/dev/null || {
    echo "$python has no venv module; on Debian and Ubuntu: apt-get install python3-venv"
    exit 1
}
