#!/usr/bin/env bash
# The steps of the Containerfile in a clean folder, for a machine without a container engine: what is
# in git, a new venv with the same extras, then the service as another user where this is root.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
place=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$place"' EXIT
chmod 755 "$place"

mkdir "$place/src" "$place/docs"
git archive HEAD | tar -x -C "$place/src"
"$python" -m venv "$place/venv"
extras=$(sed -n "s/.*'\.\(\[.*\]\)'.*/\1/p" Containerfile)
(cd "$place/src" && "$place/venv/bin/pip" install -q --disable-pip-version-check -c constraints.txt ".$extras")
cp architecture/*.md "$place/docs"
install -d -m 0700 "$place/home"

as=()
if [ "$(id -u)" = 0 ]; then
  chown 10001:10001 "$place/home"
  as=(setpriv --reuid 10001 --regid 10001 --clear-groups)
fi
token=$("$python" -c 'import secrets; print(secrets.token_urlsafe(32))')
cd "$place/home"
env -i PATH="$place/venv/bin:$PATH" UNIFIED_FLOW_HOME="$place/home" RAG_CLIENT_TOKEN="$token" \
  "${as[@]}" unified-flow serve --host 0.0.0.0 --port 0 --docs "$place/docs" > "$place/out" &
server=$!
for _ in $(seq 100); do grep -q listening "$place/out" && break; sleep 0.1; done
port=$(sed 's/.*://' "$place/out")
"$place/venv/bin/python" - "$port" "$token" <<'PYTHON'
import json
import sys
import urllib.request

port, token = sys.argv[1:]
for path, body in (("/health", None), ("/ready", None), ("/query", {"question": "What is a turn?"})):
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}",
        data=json.dumps(body).encode() if body else None,
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        print(path, answer.status, answer.read()[:120])
PYTHON
du -sh "$place/venv" | sed 's/\t.*/ is what the image adds to python:slim/'
