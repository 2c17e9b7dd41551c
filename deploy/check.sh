#!/bin/sh
# What the image's stages do, in a directory of their own and without an engine: install by hash, compile, leave no
# tools, and then every service's command starts as far as its help, with nothing written. `make image-check`.
set -eu

checkout=$(cd "$(dirname "$0")/.." && pwd)
app=$(mktemp -d)
trap 'chmod -R u+w "$app"; rm -rf "$app"' EXIT

"$checkout/deploy/install.sh" "$checkout/requirements" "$app/.venv" "$@"
cd "$checkout"
for room in foreword loaders prompts tasks worker; do
    git ls-files -co --exclude-standard "$room" | while read -r file; do
        if [ -f "$file" ]; then mkdir -p "$app/$(dirname "$file")" && cp "$file" "$app/$file"; fi
    done
done
cd "$app"
.venv/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash foreword loaders prompts tasks worker
chmod -R a-w "$app"
before=$(find . -type f | sort | xargs sha256sum | sha256sum)

for tool in pip uv setuptools wheel; do
    if .venv/bin/python -c "import $tool" 2>/dev/null; then echo "$tool is left in it" >&2; exit 1; fi
done
run() { env -i HOME=/nonexistent PYTHONDONTWRITEBYTECODE=1 .venv/bin/python -m worker "$@" >/dev/null; }
for command in migrate work relay beat flower status health; do
    run "$command" --help
done
test "$before" = "$(find . -type f | sort | xargs sha256sum | sha256sum)" || { echo "something was written" >&2; exit 1; }
echo "installs and starts: $(du -sh . | cut -f1), of it $(du -sh .venv | cut -f1) dependencies"
