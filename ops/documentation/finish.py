#!/usr/bin/env python3
"""Makes the pages that DocC wrote work at any address, and checks their links: finish.py FOLDER OPENAPI.

DocC writes the address of the site into each page. Here each page finds it out from its own address, so the folder can be served
by any web server at any path. OPENAPI is a file that the site offers for download.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any, Iterator

HOME = "documentation/nagare/index.html"
ENTRY = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Nagare</title><link rel="icon" href="favicon.ico">
<meta http-equiv="refresh" content="0; url={HOME}"></head>
<body><p><a href="{HOME}">The documentation of Nagare</a></p></body></html>
"""
# Browsers do not let a page of the file system read the files beside it.
NO_SERVER = (
    "A web server has to serve these pages. In their folder run python3 -m http.server --bind 127.0.0.1 8000, and open "
    "http://127.0.0.1:8000/."
)
# Servers may leave out the slash at the end of an address, or keep the file's name.
ADDRESS = """<script>
const path = location.pathname.replace(/(index\\.html|\\/)$/, "").replace(/\\/$/, "")
var baseUrl = path.slice(0, path.length - %(length)d)
if (location.protocol != "file:") history.replaceState(null, "", path + "/" + location.search + location.hash)
function add(tag, members) { document.head.append(Object.assign(document.createElement(tag), members)) }
%(links)s
</script>"""

END = """<script>
if (location.protocol == "file:") document.getElementById("app").textContent = %(sentence)s
else {
%(scripts)s
}
</script>"""


def links(head: str) -> Iterator[str]:
    """Statements that add icons and styles, with their addresses."""
    for relation, path in re.findall(r'<link rel="([\w-]+)" href="/([^"]+)"', head):
        yield f'add("link", {{ rel: "{relation}", href: baseUrl + "{path}" }})'
    for path in re.findall(r'<link href="/([^"]+)" rel="stylesheet">', head):
        yield f'add("link", {{ rel: "stylesheet", href: baseUrl + "{path}" }})'


def relocate(folder: Path, file: Path) -> None:
    head, _, body = file.read_text().partition("</head>")
    styles = list(links(head))
    programs = re.findall(r'<script defer="defer" src="/([^"]+)">', head)
    # A page of another version of DocC must not lose its parts unnoticed.
    if not styles or not programs or "</body>" not in body:
        raise SystemExit(f"error: {file} is not as expected. Adapt ops/documentation/finish.py to this version of DocC.")
    address = ADDRESS % {"length": len(str(file.parent.relative_to(folder))), "links": "\n".join(styles)}
    kept = re.sub(r'<script>var baseUrl.*|<link rel="(icon|mask-icon)"[^>]*>|<title>.*?</title>', "", head)
    # At the end, because they look for an element of the page.
    scripts = "\n".join(f'add("script", {{ async: false, src: baseUrl + "{path}" }})' for path in programs)
    end = END % {"scripts": scripts, "sentence": json.dumps(NO_SERVER)}
    body = body.replace("</body>", f"{end}</body>")
    file.write_text(f"{kept}<title>{title_of(folder, file)}</title>{address}</head>{body}")


def title_of(folder: Path, file: Path) -> str:
    data = folder / "data" / file.parent.relative_to(folder)
    text = str(json.loads(data.with_suffix(".json").read_text())["metadata"]["title"])
    return text.replace("&", "&amp;").replace("<", "&lt;")


def values(node: Any, key: str) -> Iterator[str]:
    """All texts under a key, at any depth."""
    if isinstance(node, dict):
        if isinstance(node.get(key), str):
            yield node[key]
        for child in node.values():
            yield from values(child, key)
    elif isinstance(node, list):
        for child in node:
            yield from values(child, key)


def broken_links(folder: Path) -> Iterator[str]:
    pages = {path: json.loads(path.read_text()) for path in (folder / "data").glob("**/*.json")}
    anchors = {path: set(values(page.get("primaryContentSections"), "anchor")) for path, page in pages.items()}
    for path, page in pages.items():
        for reference in page.get("references", {}).values():
            for url in values(reference, "url"):
                address, _, anchor = url.partition("#")
                if re.match(r"[a-z]+:", url):
                    continue
                if address.startswith("/documentation"):
                    target = folder / "data" / f"{address[1:].rstrip('/')}.json"
                elif address.startswith("/"):
                    target = folder / address[1:]
                elif address:
                    target = (folder / path.relative_to(folder / "data").with_suffix("") / address).resolve()
                else:
                    target = path
                if not target.is_file():
                    yield f"{path.stem} links to {url}, which does not exist"
                elif anchor and target in anchors and anchor not in anchors[target]:
                    yield f"{path.stem} links to {url}: there is no heading {anchor}"


def main() -> None:
    folder, openapi = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    shutil.copy(openapi, folder / "openapi.json")
    for file in sorted((folder / "documentation").glob("**/index.html")):
        relocate(folder, file)
    (folder / "index.html").write_text(ENTRY)
    broken = sorted(set(broken_links(folder)))
    if broken:
        raise SystemExit("\n".join(f"error: {one}. Correct the article." for one in broken))


if __name__ == "__main__":
    main()
