#!/bin/sh
# Install the locked application into a virtual environment that is moved nowhere afterwards: what the image's first
# stage runs, and what `make image-check` and a test run elsewhere.
#
#   deploy/install.sh REQUIREMENTS TARGET [EXTRA...]
#
# REQUIREMENTS is the directory of bootstrap.txt, app.txt and the extras (flower, model, traces). All is checked by
# hash. Compiled here, so that nothing is written where the root is read-only. PYTHON is what to run it with.
set -eu

requirements=$1 target=$2
shift 2
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT

"${PYTHON:-python3}" -m venv "$tools"
"$tools/bin/python" -m pip install --quiet --no-cache-dir --disable-pip-version-check --require-hashes \
    --requirement "$requirements/bootstrap.txt"
"${PYTHON:-python3}" -m venv --without-pip "$target"  # no build tools in it
set -- "$requirements/app.txt" $(for extra in "$@"; do echo "$requirements/$extra.txt"; done)
VIRTUAL_ENV=$target "$tools/bin/uv" pip sync --quiet --no-cache --require-hashes --only-binary :all: \
    ${UV_OPTIONS:-} "$@"
# Equal bytes of equal sources: a module's compiled form holds its source's hash, and not the time of this.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-0} "$target/bin/python" -m compileall -q -j 0 \
    --invalidation-mode unchecked-hash "$target/lib"
