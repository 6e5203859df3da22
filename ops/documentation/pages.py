"""Pages of the documentation that are made of other files: the events of the log, from the sources that log them; the operations
of the operators' API, from its OpenAPI document."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Iterator

OPENAPI = "Sources/nagare/Nagare.docc/openapi.json"


def generated(repository: Path) -> dict[str, str]:
    """The text of each page, by its name."""
    return {
        "LogEvents": log_page(repository),
        "OperatorsAPIReference": operations_page(json.loads((repository / OPENAPI).read_text())),
    }


# ---- The log ----

LEVELS = ("critical", "error", "warning", "notice", "info", "debug", "trace")
CALL = re.compile(r"\blogger\??\.(log|" + "|".join(LEVELS) + r")\(|(?<![\w.])(log)\((?=\")")
STRING = re.compile(r'"((?:[^"\\]|\\\((?:[^()]|\([^()]*\))*\)|\\.)*)"')
FIELD = re.compile(r'(?:\[|,|^)\s*"(\w+)":|\["(\w+)"\] =', re.MULTILINE)
# By the folders of their modules.
AREAS = {
    "Sources/nagare": "The node", "Sources/Room/Access": "Authentication", "Sources/Signaling": "Clients, webhooks and drains",
    "Sources/Metrics/Telemetry": "Traces", "Sources/Room/Cluster": "Clusters",
}
# Messages that are a sentence made of a value, by the text in the source.
SENTENCES = {
    "\\(warning)": "a sentence about the configuration",
    "\\(shortfall.message)": "a sentence about a resource of the machine",
    "\\(message)": "a sentence with the reason for which files were not read again",
    "The key of app \\(app.appID) has fewer than \\(AppKey.keyBytesRecommended) characters.":
        "a sentence about a short key of an app",
    "\\(failure.message) Until then, clients whose network blocks UDP cannot connect there; --ice-tcp off ends this warning.":
        "a sentence about a TCP port that is taken",
}
INTRODUCTION = """# Events of the log

Every line that a node logs, with its level and its fields.

## Overview

The log goes to standard error, one event a line. `--log-level` sets the least level, and `--log-format json` makes each line an
object with `time`, `level`, `logger`, `message` and the fields of the event:

```
2026-11-24T10:00:00.123Z info nagare: peer connected peer=3f
{"time":"2026-11-24T10:00:00.123Z","level":"info","logger":"nagare","message":"peer connected","peer":"3f"}
```

A field with one of these four names gets `_` behind it. Values may come from clients: nothing in them ends the line or looks like
another field. Tokens, passwords and keys are never logged.

Libraries log, too, with `nagare.http` as their logger: warnings and errors of the HTTP server.
"""


def balanced(text: str, start: int) -> str:
    """The text in parentheses that begins at `start`, which is behind the opening one."""
    depth, index = 1, start
    while depth:
        character = text[index]
        if character == '"':
            index = STRING.match(text, index).end()  # type: ignore[union-attr]
            continue
        depth += (character == "(") - (character == ")")
        index += 1
    return text[start : index - 1]


def fields(call: str, text: str, position: int) -> list[str]:
    """The names of the fields of a call, which has them itself, from a function, or from a variable above it."""
    source = call
    if match := re.search(r"metadata: (\w+)\(", call):
        body = re.search(r"func " + match[1] + r"\([^{]*\{(.*?)\n    \}", text, re.DOTALL)
        # A call can add fields to those of the function.
        source = (body[1] if body else "") + call
    elif match := re.search(r"metadata: (\w+)$", call.strip()):
        start = max(text.rfind(f"{word} {match[1]}", 0, position) for word in ("let", "var"))
        source = text[start:position]
    return [one or other for one, other in FIELD.findall(source)]


def area_of(path: Path) -> str | None:
    """The area of a source by its path from the repository's top, None of a module that logs nothing."""
    return next((area for folder, area in AREAS.items() if path.is_relative_to(folder)), None)


def log_events(repository: Path) -> Iterator[tuple[str, str, str, list[str]]]:
    """Area, message, level and fields of each event."""
    for path in sorted(repository.glob("Sources/*/**/*.swift")):
        area = area_of(path.relative_to(repository))
        text = path.read_text()
        for match in CALL.finditer(text) if area else ():
            call = balanced(text, match.end())
            message = STRING.search(call)
            # A helper's own call has the message as a parameter.
            if message is None or call.startswith("message"):
                continue
            level = match[1] or "info"
            if level == "log":
                level = " or ".join(re.findall(r"\.(" + "|".join(LEVELS) + r")\b", call)[::-1])
            if match[2]:
                yield area, message[1], level, fields("metadata: metadata(", text, match.start())
            else:
                yield area, message[1], level, fields(call, text, match.start())


def shown(message: str) -> str:
    if message in SENTENCES:
        return SENTENCES[message]
    return "`" + re.sub(r"\\\((?:\w+\.)*(\w+)\)", lambda match: match[1].upper(), message) + "`"


def log_page(repository: Path) -> str:
    events = {(area, message, level, tuple(names)) for area, message, level, names in log_events(repository)}
    # Sentences made of values come last.
    events = sorted(events, key=lambda event: (shown(event[1])[0] != "`", event[1].lower(), event))
    text = INTRODUCTION
    for title in AREAS.values():
        text += f"\n## {title}\n\n| Message | Level | Fields |\n| --- | --- | --- |\n"
        for _, message, level, names in (event for event in events if event[0] == title):
            text += f"| {shown(message)} | {level} | {', '.join(f'`{name}`' for name in names)} |\n"
    return text


# ---- The operators' API ----

OPERATIONS = """# Operations of the operators' API

Every operation below `/v1` of the admin address, with its parameters, bodies and errors.

## Overview

<doc:OperatorsAPI> explains what they are for. This page is made of the OpenAPI 3.1 document that a node serves as
`GET /v1/openapi.json`. The folder of this site has it, too, as `openapi.json`. On a node with `--admin-token` all other
operations need `Authorization: Bearer TOKEN`; the token of `--admin-read-token` permits GET. A member of an object in another one is written with a dot, and a member of the elements of a
list with `[]`.

"""


def type_of(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(type_of(one) for one in schema["anyOf"])
    kind = schema.get("type", "any value")
    if kind == "array":
        bounds = f" of at most {schema['maxItems']}" if schema.get("maxItems", 0) < 1_000_000 else ""
        return f"list{bounds}: {type_of(schema['items'])}"
    if kind == "integer" and schema.get("maximum", 0) < 9_007_199_254_740_991:
        return f"integer, {schema['minimum']} to {schema['maximum']}"
    if kind == "string" and schema.get("maxLength", 0) < 1_000_000 and "maxLength" in schema:
        least, most = schema["minLength"], schema["maxLength"]
        return f"string, {most} characters" if least == most else f"string, {least} to {most} characters"
    return str(kind)


def rows(schema: dict[str, Any], prefix: str = "", depth: int = 0) -> Iterator[str]:
    """Rows for the members of a schema, and for those of the objects in it."""
    required = schema.get("required", [])
    for name, member in sorted(schema.get("properties", {}).items(), key=lambda one: (one[0] not in required, one[0])):
        need = "yes" if name in required else ""
        description = member.get("description", "")
        yield f"| `{prefix}{name}` | {type_of(member)} | {need} | {description} |"
        inner, path = member, f"{prefix}{name}"
        while inner.get("type") == "array":
            inner, path = inner["items"], path + "[]"
        yield from rows(inner, path + ".", depth + 1)


def table(schema: dict[str, Any], title: str) -> str:
    if "oneOf" in schema:
        return "".join(table(one, f"{title}, one of") for one in schema["oneOf"])
    if schema.get("type") == "array":
        return f"{title}: {type_of(schema)}.\n\n"
    lines = list(rows(schema))
    if not lines:
        return f"{title}: an object.\n\n" if schema else ""
    return f"{title}:\n\n| Member | Type | Required | Meaning |\n| --- | --- | --- | --- |\n" + "\n".join(lines) + "\n\n"


def operations_page(document: dict[str, Any]) -> str:
    text = OPERATIONS
    for path, methods in sorted(document["paths"].items()):
        for method, operation in sorted(methods.items()):
            title, _, more = operation["summary"].rstrip(".").partition(". ")
            # A path as a heading would be wider than a phone.
            text += f"### {title}\n\n```\n{method.upper()} {path}\n```\n\n" + (f"{more}.\n\n" if more else "")
            parameters = operation.get("parameters", [])
            if parameters:
                text += "| Parameter | In | Type | Required | Meaning |\n| --- | --- | --- | --- | --- |\n"
            for one in parameters:
                need = "yes" if one["required"] else ""
                text += f"| `{one['name']}` | {one['in']} | {type_of(one['schema'])} | {need} | {one['description']} |\n"
            text += "\n" if parameters else ""
            if "requestBody" in operation:
                body = operation["requestBody"]
                need = "" if body["required"] else ", which may be left out"
                text += table(body["content"]["application/json"]["schema"], f"The body{need}")
            for status, answer in sorted(operation["responses"].items()):
                schema = answer.get("content", {}).get("application/json", {}).get("schema")
                if schema:
                    text += table(schema, f"The answer, with status {status}")
                elif status.startswith("2"):
                    text += f"The answer has status {status} and no body.\n\n"
            failures = [
                f"{status} ({re.sub(r'(^|; )([A-Z])', lambda first: first[0].lower(), answer['description'].rstrip('.'))})"
                for status, answer in sorted(operation["responses"].items()) if not status.startswith("2")
            ]
            text += f"Errors: {', '.join(failures)}.\n\n" if failures else ""
    return text
