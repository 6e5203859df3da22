#!/usr/bin/env python3
"""Makes one DocC catalogue of all articles of the repository: catalogue.py FOLDER.

Articles stay in the catalogues beside their modules. This copies them, with what DocC needs in one catalogue: the pages of
modules become articles, links between files become links between pages, and pictures come along. A link to a file that is
not there ends the program. Some pages are made of other files: see SOURCES, and pages.py.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pages

REPOSITORY = Path(__file__).resolve().parents[2]
# Articles that are not in a catalogue, by the names of their pages, each with what a list of pages says of it.
SOURCES = {
    "Comparison": ("Benchmarks/compare/README.md", "CPU time and latency beside Janus, Pion and a bare loop in C."),
    "Scorecard": ("Benchmarks/scorecard/README.md", "103 cases in virtual time, beside Google Congestion Control."),
    "ServerScorecard": ("Benchmarks/scorecard/server.md", "The same for simulcast layers, screens and whole calls."),
    "Security": ("SECURITY.md", "The threat model, and how to report a vulnerability."),
}
THEME = REPOSITORY / "Sources/nagare/Nagare.docc/theme-settings.json"
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


class BrokenLink(Exception):
    """A link to a file that does not exist."""


def articles() -> dict[Path, str]:
    """The Markdown files of the site, each with the name of its page."""
    found = {path: path.stem for path in sorted(REPOSITORY.glob("Sources/**/*.docc/*.md"))}
    found |= {REPOSITORY / path: name for name, (path, _) in SOURCES.items()}
    names = list(found.values())
    for name in names:
        if names.count(name) > 1:
            raise SystemExit(f"error: two articles are named {name}: rename one of the files.")
    return found


def sized(picture: bytes) -> bytes:
    """A picture that has a size of its own: without one, browsers make an SVG as small as a stamp."""
    opening = re.match(rb'<svg [^>]*viewBox="0 0 ([\d.]+) ([\d.]+)"[^>]*>', picture)
    if opening is None or b" width=" in opening[0]:
        return picture
    return picture.replace(b"<svg ", b'<svg width="%b" height="%b" ' % opening.groups(), 1)


class Catalogue:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names = articles()

    def write(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for path, name in self.names.items():
            self.add(name, self.translated(path))
        for name, text in pages.generated(REPOSITORY).items():
            self.add(name, text)
        (self.folder / THEME.name).write_bytes(THEME.read_bytes())

    def add(self, name: str, text: str) -> None:
        (self.folder / f"{name}.md").write_text(text)

    def translated(self, path: Path) -> str:
        lines = []
        is_code = False
        text = path.read_text()
        if (name := self.names[path]) in SOURCES:
            title, _, rest = text.partition("\n")
            overview = "" if rest.lstrip().startswith("#") else "\n\n## Overview"
            text = f"{title}\n\n{SOURCES[name][1]}{overview}\n{rest}"
        if text.startswith("# ``"):
            # The first page of the site lists the articles of modules.
            text = text.partition("\n## Topics\n")[0]
        for line in text.splitlines():
            if re.match(r"\s*```", line):
                is_code = not is_code
                line = line.replace("```sh runnable", "```sh")
            elif not is_code:
                line = LINK.sub(lambda match: self.link(path, *match.groups()), line)
                line = re.sub(r"`([\w./]+\.md)`", self.mention, line)
                # The site has no pages of symbols.
                line = re.sub(r"^# ``(\w+)``$", r"# The module \1", line)
                line = re.sub(r"``([^`]+)``", r"`\1`", line)
            lines.append(line)
        return "\n".join(lines) + "\n"

    def mention(self, match: re.Match[str]) -> str:
        """A link for the path of an article."""
        name = self.names.get(REPOSITORY / match[1])
        return f"<doc:{name}>" if name else match[0]

    def link(self, path: Path, mark: str, text: str, address: str) -> str:
        if re.match(r"[a-z]+:", address) or address.startswith("#"):
            return f"{mark}[{text}]({address})"
        file, _, anchor = address.partition("#")
        target = (path.parent / file).resolve()
        if not target.exists():
            raise BrokenLink(f"{path.relative_to(REPOSITORY)} links to {address}, which does not exist.")
        if mark:
            # DocC finds pictures by their names.
            copy, picture = self.folder / target.name, sized(target.read_bytes())
            if copy.exists() and copy.read_bytes() != picture:
                raise BrokenLink(f"{path.relative_to(REPOSITORY)} shows {address}: another picture has this name.")
            copy.write_bytes(picture)
            return f"![{text}]({target.name})"
        if target in self.names:
            return f"[{text}](doc:{self.names[target]}{'#' + anchor if anchor else ''})"
        # The site does not have the file: its path in the repository tells where it is.
        name = str(target.relative_to(REPOSITORY))
        return f"`{name}`" if text == name else f"{text} (`{name}`)"


def main() -> None:
    try:
        Catalogue(Path(sys.argv[1])).write()
    except BrokenLink as error:
        raise SystemExit(f"error: {error} Correct the link.") from None


if __name__ == "__main__":
    main()
