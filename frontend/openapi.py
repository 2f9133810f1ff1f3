"""Print the OpenAPI document of the page's REST API; the front end's types are made from it (``make frontend``)."""

from __future__ import annotations

import json
from unittest.mock import MagicMock

from agcd.app.web.app import make_api

# The routes are read and never called, so nothing of a project is needed.
print(json.dumps(make_api(MagicMock()).openapi(), indent=1, sort_keys=True))
