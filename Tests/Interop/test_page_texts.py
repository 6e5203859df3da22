"""The texts of the built-in page: all of them in one file for each language, and none of them missing."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytestmark = pytest.mark.static

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "Sources/Signaling/Pages"
LANGUAGES = ("en", "ja")
VIEWS = sorted(one for one in PAGES.glob("*.js") if not one.name.startswith("strings-"))
ENTRY = re.compile(r"^  '([^']+)': ('(?:[^'\\]|\\.)*'|\{ .+ \}),$")
FORM = re.compile(r"(zero|one|two|few|many|other): ('(?:[^'\\]|\\.)*')")


def strings(language: str) -> dict[str, list[str]]:
    """The texts of each key: one, or one for each plural form."""
    found: dict[str, list[str]] = {}
    body = (PAGES / f"strings-{language}.js").read_text().split("export const strings = {\n")[1]
    for line in body.splitlines():
        if not line.strip() or line.startswith("  //") or line == "};":
            continue
        entry = ENTRY.match(line)
        assert entry, f"strings-{language}.js: each text has a line of its own, of a key and a string: {line}"
        assert entry[1] not in found, f"strings-{language}.js has {entry[1]} twice"
        forms = FORM.findall(entry[2]) if entry[2].startswith("{") else [("other", entry[2])]
        assert "other" in [name for name, _ in forms], f"{entry[1]} has no form “other”"
        found[entry[1]] = [text[1:-1] for _, text in forms]
    return found


STRINGS = {language: strings(language) for language in LANGUAGES}


def placeholders(texts: list[str]) -> set[str]:
    return {name for one in texts for name in re.findall(r"\{(\w+)\}", one)}


def code(path: Path) -> str:
    """A script without its comments."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    return re.sub(r"(^|\s)//.*$", r"\1", text, flags=re.M)


def test_no_text_is_missing_in_any_language() -> None:
    english, others = STRINGS["en"], {name: one for name, one in STRINGS.items() if name != "en"}
    for language, texts in others.items():
        assert texts.keys() == english.keys(), f"keys that only one of en and {language} has"
        for key, found in texts.items():
            assert all(found) and all(english[key]), f"{key} is empty"
            # One form may leave the number out, as “Nobody” does.
            assert placeholders(found) | {"count"} == placeholders(english[key]) | {"count"}, key
        same = [key for key, found in texts.items() if found == english[key] and re.search("[a-z]{4}", found[0])]
        assert same == [], f"not translated to {language}"


def named_keys() -> tuple[set[str], set[str], set[str]]:
    """The keys that views and page name, and the beginnings and ends of those that they put together."""
    text = "\n".join(code(path) for path in VIEWS)
    page = (PAGES / "index.html").read_text()
    names = set(re.findall(r'data-(?:text|label|placeholder|title)="([^"]+)"', page))
    # Any literal that reads as a key, as in a table of keys.
    names |= {one for one in re.findall(r"'([\w.-]+)'", text) if one in STRINGS["en"]}
    names |= set(re.findall(r"\bt\('([^']+)'", text))
    beginnings = set(re.findall(r"`([\w-]+\.[\w.-]*)\$\{", text))
    # A choice of beginnings, as in `${muted ? 'muted' : 'unmuted'}.${kind}`.
    for choice in re.findall(r"`\$\{[^}]* \? '(\w+)' : '(\w+)'\}\.", text):
        beginnings |= {f"{one}." for one in choice}
    return names, beginnings, set(re.findall(r"\bt\(`\$\{[^}]*\}(\w+)`", text))


def test_every_key_that_a_view_names_is_there_and_no_other() -> None:
    names, *parts = named_keys()
    assert sorted(names - STRINGS["en"].keys()) == []
    beginnings, ends = map(tuple, parts)
    unused = [one for one in STRINGS["en"] if one not in names and not one.startswith(beginnings)]
    assert [one for one in unused if not one.endswith(ends)] == []


# What is the same in every language.
NAMES = {"Nagare", "VP8", "VP9", "H.264", "AV1", "1080p", "720p", "360p", "–"}


class Texts(HTMLParser):
    """The texts of a page that are not filled in from the strings, and the attributes that people read."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        for name, value in attributes:
            if name in ("aria-label", "placeholder", "title", "alt"):
                self.found.append(f"{name}={value}")

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        # Without scripts nothing is filled in.
        if data.strip() and "noscript" not in self.open and data.strip() not in NAMES:
            self.found.append(data.strip())


def test_the_page_has_no_text_of_its_own() -> None:
    parser = Texts()
    parser.feed((PAGES / "index.html").read_text())
    assert parser.found == []


LITERAL = re.compile(r"'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`")
# Names of keys, errors and codecs, which are no words for people.
IDENTIFIERS = re.compile(
    r"(Escape|Enter|Tab|Arrow\w+|Key\w|Home|End|Firefox\w*|Nagare:?|Opus|H\.26[45]|Default|\w*Error|Mbit/s|[A-Z0-9-]+)"
)


def test_no_view_has_a_text_of_its_own() -> None:
    found = []
    for path in VIEWS:
        for literal in LITERAL.findall(code(path)):
            # A value inside of a word makes a key.
            text = re.sub(r"\w*\$\{[^{}]*\}\w*", "", literal[1:-1]).strip()
            starts_as_text = re.match(r"[A-Z][a-z]|[぀-ヿ一-鿿]", text) and not IDENTIFIERS.fullmatch(text)
            if starts_as_text or re.search(r"[a-z]{2,} [a-z]{2,}[.:]?( [a-z]+){2}", text):
                found.append(f"{path.name}: {literal}")
    assert found == []


# Reasons that the page never gets, or after which people can do nothing but reload it: one sentence says that.
WITHOUT_WORDS = {
    "NO-ERROR", "ALREADY-JOINED", "INVALID-JSON", "MISSING-TYPE", "INVALID-MESSAGE", "BAD-FINGERPRINT", "NOT-JOINED",
    "SPOTLIGHT-NOT-USED", "PARAMETERS-INVALID", "SUBSCRIPTIONS-FULL", "REQUEST-INVALID", "METHOD-UNKNOWN",
}  # fmt: skip


def test_every_reason_of_a_failure_has_words() -> None:
    module = "\n".join(code(path) for path in (PAGES / "nagare").glob("*.js"))
    reasons = set(re.findall(r"'([A-Z]+(?:-[A-Z]+)+)'", module))
    for name in ("SoraClose.swift", "ChannelRequest.swift"):
        text = (ROOT / "Sources/Signaling/Sora" / name).read_text()
        reasons |= set(re.findall(r'= "([A-Z]+(?:-[A-Z]+)+)"', text))
    same = dict(re.findall(r"'([A-Z-]+)': '([A-Z-]+)'", code(PAGES / "words.js")))
    silent = [one for one in reasons - WITHOUT_WORDS if f"failure.{same.get(one, one)}" not in STRINGS["en"]]
    assert sorted(silent) == []
