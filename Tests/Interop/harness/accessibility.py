"""Accessibility of pages, judged by axe."""

from __future__ import annotations

from axe_core_python.sync_playwright import Axe
from playwright.sync_api import Page

# WCAG 2.1 A and AA, and what axe calls best practices.
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}


def violations(tab: Page) -> list[str]:
    """The broken rules and the elements that break them, one a line."""
    result = Axe().run(tab, options=RULES)
    return [f"{rule['id']}: {node['target']}" for rule in result["violations"] for node in rule["nodes"]]
