"""Alice, Bob and Carol in one interactive channel, in a browser: `python -m harness.call_of_three ORIGIN CHANNEL`.

It prints a line once all three are there, and ends with its input.
"""

from __future__ import annotations

import json
import sys

from playwright.sync_api import sync_playwright

from .chromium import Chromium

JOIN = """async (options) => {
  const { Nagare } = await import('/nagare.js');
  window.channel = await Nagare.join({ profile: 'interactive', ...options });
}"""


def main() -> None:
    origin, channel = sys.argv[1:]
    with sync_playwright() as playwright:
        chromium = Chromium(playwright)
        for user in ("alice", "bob", "carol"):
            page = chromium.page(origin)
            # A module that is not fetched is reported without its reason.
            page.tab.on("requestfailed", lambda request: print(request.url, request.failure, file=sys.stderr, flush=True))
            page.goto(f"{origin}/nagare.d.ts")
            page.tab.evaluate(f"({JOIN})({json.dumps({'channel': channel, 'user': user})})")
        print("all are there", flush=True)
        sys.stdin.read()


main()
