#!/usr/bin/env python3
"""Writes the manual pages of Nagare: manual.py NAGARE DATE FOLDER.

nagare.1 comes from the program's help, nagare.yaml.5 from `nagare settings` and `nagare limits`, so that neither page can
differ from the program NAGARE. DATE is the date in the pages' footer, as 2026-01-31.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

INTRODUCTION = """
Nagare receives audio and video of publishers (browsers, OBS, GStreamer, FFmpeg and the client SDKs of Sora) over WebRTC and
forwards them to viewers. It never transcodes.

\\fBnagare serve\\fR runs a node. Without settings it serves everybody on all addresses: see \\fBnagare.yaml\\fR(5). The other
commands operate a running node, make tokens, and measure.
"""

ENVIRONMENT = """
Each option of \\fBnagare serve\\fR is also a variable, such as NAGARE_TLS_CERT for \\fB--tls-cert\\fR. NAGARE_CONFIG names the
configuration file. The command line overrides the environment, and the environment overrides the file.
"""

FILES = {
    "/etc/nagare/nagare.yaml": "The configuration of the service \\fInagare.service\\fR.",
    "/etc/nagare/token": "The token that clients need, unless the configuration says otherwise.",
    "/etc/nagare/environment": "Environment variables of the service. They override the configuration until a restart.",
    "/usr/share/doc/nagare/examples/nagare.example.yaml": "A configuration file with all settings.",
}

SIGNALS = {
    "SIGTERM, SIGINT": "Stop: refuse new clients, wait up to \\fBdrain-deadline\\fR for the others to leave, close all "
    "connections within \\fBgrace\\fR, and exit with status 0. A second signal ends the wait.",
    "SIGHUP": "Read the settings and their files again, such as certificates and tokens. With \\fB--dev\\fR, stop.",
}

STATUSES = {
    "0": "The command succeeded, or the node was stopped.",
    "1": "A file cannot be read, a port is in use, or the command failed.",
    "64": "An argument or a setting is invalid. The message names it.",
}


def escaped(text: str) -> str:
    """Text as roff prints it unchanged. A hyphen stays one that can be typed."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def bold(text: str) -> str:
    return f"\\fB{escaped(text)}\\fR"


def italic(text: str) -> str:
    return f"\\fI{escaped(text)}\\fR"


def ours(text: str) -> str:
    """Text of this file, which may contain font escapes: only hyphens are escaped."""
    return text.strip().replace("-", "\\-")


def title(name: str, section: int, date: str, version: str, manual: str) -> list[str]:
    return [f'.TH {name.upper()} {section} "{date}" "Nagare {escaped(version)}" "{manual}"', ".nh", ".ad l"]


def listed(entries: dict[str, str]) -> list[str]:
    return [line for term, text in entries.items() for line in (".TP", ours(f"\\fB{term}\\fR"), ours(text))]


def discussed(text: str) -> list[str]:
    """A discussion of the help: paragraphs, in which indented lines are printed as they stand."""
    lines: list[str] = []
    is_example = False
    for line in text.split("\n"):
        if line.startswith("  ") != is_example:
            is_example = not is_example
            lines += [".RS 4", ".EX"] if is_example else [".EE", ".RE"]
        if not line:
            lines.append(".PP")
        else:
            lines.append(escaped(line.strip() if is_example else line))
    return lines + ([".EE", ".RE"] if is_example else [])


def spelled(argument: dict) -> list[str]:
    """The names of an option, in the order of the help."""
    return [("-" if name["kind"] == "short" else "--") + name["name"] for name in argument.get("names", [])]


def joined(arguments: list[dict]) -> list[tuple[list[str], dict]]:
    """Arguments with their names. `--no-NAME` belongs to `--NAME`."""
    options: list[tuple[list[str], dict]] = []
    for argument in arguments:
        names = spelled(argument)
        if options and names and names[0].startswith("--no-") and "--" + names[0][5:] in options[-1][0]:
            options[-1][0].extend(names)
        else:
            options.append((names, argument))
    return options


def described(names: list[str], argument: dict) -> list[str]:
    """The paragraph of an option or a positional argument."""
    head = ", ".join(bold(name) for name in names)
    value = italic(argument["valueName"])
    if argument["kind"] == "positional":
        head = value
    elif argument["kind"] == "option":
        head += f" {value}"
    text = argument.get("abstract", "")
    default = argument.get("defaultValue")
    if default and "(default:" not in text and argument["kind"] == "option":
        text += f" (default: {default})"
    return [".TP", head, *escaped(text).split("\n")]


def synopsis(path: str, command: dict) -> str:
    words = [bold(path)]
    positional = [one for one in command["arguments"] if one["kind"] == "positional"]
    if len(positional) < len(command["arguments"]):
        words.append("[" + italic("option") + "...]")
    for one in positional:
        word = italic(one["valueName"]) + ("..." if one["isRepeating"] else "")
        words.append(f"[{word}]" if one["isOptional"] else word)
    return " ".join(words)


def chapter(command: dict) -> list[str]:
    """A command with its options, which stay in the groups of the help."""
    path = f"nagare {command['commandName']}"
    lines = [f'.SS "{escaped(path)}"', synopsis(path, command), ".PP", escaped(command["abstract"])]
    if command.get("discussion"):
        lines += [".PP", *discussed(command["discussion"])]
    section = None
    for names, argument in joined(command["arguments"]):
        # Each command has --help, and the program's version is the same for all.
        if not argument["shouldDisplay"] or set(names) & {"--help", "--version"}:
            continue
        if argument.get("sectionTitle") != section:
            section = argument.get("sectionTitle")
            lines += [".PP", bold(section) + ":"]
        lines += described(names, argument)
    return lines


def program_page(program: dict, date: str, version: str) -> list[str]:
    commands = [one for one in program["subcommands"] if one["commandName"] != "help"]
    lines = title("nagare", 1, date, version, "User Commands")
    lines += [".SH NAME", f"nagare \\- {escaped('WebRTC SFU media server')}", ".SH SYNOPSIS"]
    lines += [bold("nagare serve") + " [" + bold("--config") + " " + italic("file") + "] [" + italic("option") + "...]"]
    for line in (
        bold("nagare") + " " + italic("command") + " [" + italic("option") + "...] [" + italic("argument") + "...]",
        bold("nagare") + " [" + bold("--help") + " | " + bold("--version") + "]",
    ):
        lines += [".br", line]
    lines += [".SH DESCRIPTION"]
    for paragraph in INTRODUCTION.strip().split("\n\n"):
        lines += [".PP", ours(paragraph)]
    lines += [".SH COMMANDS"]
    for command in commands:
        lines += chapter(command)
    lines += [".SH ENVIRONMENT", ours(ENVIRONMENT)]
    lines += [".SH FILES", *listed(FILES), ".SH SIGNALS", *listed(SIGNALS), ".SH EXIT STATUS", *listed(STATUSES)]
    return lines + [".SH SEE ALSO", r"\fBnagare.yaml\fR(5), \fBsystemctl\fR(1), \fBjournalctl\fR(1)"]


def settings_page(settings: str, limits: str, date: str, version: str) -> list[str]:
    """The page of the configuration file, from the example file: groups, entries, and their keys below the text."""
    introduction, *groups = re.split(r"^# ---- (.*) ----$", settings, flags=re.MULTILINE)
    lines = title("nagare.yaml", 5, date, version, "File Formats")
    lines += [".SH NAME", "nagare.yaml \\- configuration of the media server nagare", ".SH DESCRIPTION"]
    # The first paragraph says which command reads the file.
    paragraphs = [paragraph_text(one) for one in introduction.split("\n#\n")]
    lines += [".PP", escaped(f"{paragraphs[0]}. The file is YAML."), ".PP", escaped(" ".join(paragraphs[1:]))]
    for name, body in zip(groups[::2], groups[1::2]):
        lines += [f'.SH "{escaped(name.upper())}"']
        for entry in body.strip().split("\n\n"):
            lines += setting(entry)
    lines += [".SH LIMITS", escaped("The values of limit and their defaults:"), ".RS 4", ".EX"]
    lines += [escaped(line) for line in limits.strip().splitlines()]
    return lines + [".EE", ".RE", ".SH SEE ALSO", r"\fBnagare\fR(1)"]


def paragraph_text(comment: str) -> str:
    return " ".join(line.removeprefix("#").strip() for line in comment.strip().splitlines())


# The first line of a value: a key, alone for a list.
KEY = re.compile(r"^# ([a-z][a-z0-9-]*):( |$)")


def setting(entry: str) -> list[str]:
    """A setting: its key, its text, and the default or an example as it is written in the file."""
    lines = entry.splitlines()
    start = next((index for index, line in enumerate(lines) if KEY.match(line)), None)
    text = escaped(paragraph_text("\n".join(lines[:start])))
    if start is None:
        return [".PP", text]
    match = KEY.match(lines[start])
    name = match.group(1) if match else ""
    example = [".RS 11", ".EX", *(escaped(line.removeprefix("# ")) for line in lines[start:]), ".EE", ".RE"]
    return [".TP", bold(name), text, *example]


def output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> None:
    if len(sys.argv) != 4:
        sys.exit("usage: manual.py NAGARE DATE FOLDER")
    nagare, date, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    version = output(nagare, "--version").split()[-1]
    program = json.loads(output(nagare, "--experimental-dump-help"))["command"]
    pages = {
        "nagare.1": program_page(program, date, version),
        "nagare.yaml.5": settings_page(output(nagare, "settings"), output(nagare, "limits"), date, version),
    }
    for name, lines in pages.items():
        (folder / name).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
