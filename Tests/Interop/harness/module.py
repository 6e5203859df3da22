"""Calls of the browser module from a page of the node's origin."""

from __future__ import annotations

import json
from typing import Any

from .chromium import ChromiumPage

IMPORT = "const { Nagare, Channel, User, RemoteConnection, NagareError } = await import('/nagare.js');"


def run(page: ChromiumPage, body: str, *arguments: Any) -> Any:
    """The result of an asynchronous function with the module's names and `given`, the arguments."""
    return page.evaluate(f"(async (given) => {{ {IMPORT} {body} }})({json.dumps(arguments)})")
