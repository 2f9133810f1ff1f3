"""Whether `agcd serve` answers in this container: exit code 0 or 1, for HEALTHCHECK."""

import http.client
import os

# Behind a proxy the server goes by its public name alone.
host = os.environ.get("AGCD_HOST") or "127.0.0.1:8765"
connection = http.client.HTTPConnection("127.0.0.1", int(os.environ.get("AGCD_PORT", "8765")), timeout=4)
try:
    connection.request("GET", "/static/favicon.svg", headers={"Host": host})
    code = int(connection.getresponse().status != 200)
except OSError:
    code = 1
raise SystemExit(code)
