"""What tests the files that differ from a revision: changed.py [REVISION]. Prints one line for each choice of ops/test:

    targets=WireTests ICETests      test targets of the changed modules, and of all that depend on them, by the manifest
    file=Tests/Interop/test_x.py    interop files that name what changed
    layer=fuzz                      other layers whose own files changed

An interop file names what changed when it, or a module of the harness that it uses by imports or by fixtures,
- changed itself, or has the name of a changed module of the harness,
- has the name of a changed module in its text, or in its own name: test_turn.py is about TURN,
- has the name of a changed file of two words or more, such as PeerData of PeerData.swift or PeerData+Sending.swift,
- has the path of a changed file, or of a folder around it, such as ops/helm, or the name of a file that is not Swift.
Changed pages choose the rows of that page. This is a quick look, not a proof: a landing needs the whole run.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
INTEROP = REPOSITORY / "Tests/Interop"
PAGES = {
    "Sources/Signaling/Pages/nagare/": ("test_module.py", "test_page.py", "test_page_texts.py"),
    "Sources/Signaling/Pages/Operators/": ("test_operators_page.py",),
    "Sources/Signaling/Pages/": ("test_page.py", "test_page_call.py", "test_page_form.py", "test_page_texts.py"),
}
# All rows depend on these.
EVERYWHERE = ("Tests/Interop/conftest.py", "Tests/Interop/pytest.ini", "Tests/Interop/requirements.txt")


def output(*command: str, **variables: str) -> str:
    done = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, env={**os.environ, **variables}, check=False
    )
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(command)} failed: {done.stderr.strip()}")
    return done.stdout


def default_revision() -> str:
    """Where this branch left its upstream, or HEAD without one."""
    done = subprocess.run(
        ["git", "merge-base", "HEAD", "@{upstream}"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "HEAD"


def changed_files(revision: str) -> list[str]:
    known = output("git", "diff", "--name-only", "--no-renames", revision, "--")
    new = output("git", "ls-files", "--others", "--exclude-standard")
    return sorted({*known.splitlines(), *new.splitlines()})


# ---- Swift ----


class Manifest:
    """The targets of Package.swift, as SwiftPM reads them."""

    def __init__(self) -> None:
        # With a folder of its own it does not wait for a build.
        command = ("swift", "package", "--scratch-path", ".build-tidy", "dump-package")
        self.targets = json.loads(output(*command, NAGARE_TESTING="1"))["targets"]
        self.dependents: dict[str, set[str]] = {}
        for target in self.targets:
            for dependency in target["dependencies"]:
                name = next(iter(dependency.values()))[0]
                self.dependents.setdefault(name, set()).add(target["name"])

    def folder(self, target: dict) -> str:
        default = "Tests/" if target["type"] == "test" else "Sources/"
        return (target.get("path") or default + target["name"]).rstrip("/") + "/"

    def target_of(self, path: str) -> str | None:
        return next((one["name"] for one in self.targets if path.startswith(self.folder(one))), None)

    def tests_of(self, names: set[str]) -> list[str]:
        """The test targets among these and all that depend on them."""
        found, waiting = set(names), list(names)
        while waiting:
            more = self.dependents.get(waiting.pop(), set()) - found
            found |= more
            waiting += more
        return [one["name"] for one in self.targets if one["type"] == "test" and one["name"] in found]


# ---- Python ----


@cache
def text_of(path: Path) -> str:
    return path.read_text()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(text_of(path))


def module_path(name: str) -> Path | None:
    path = INTEROP / (name.replace(".", "/") + ".py")
    return path if path.is_file() else None


def names_by_module(path: Path) -> dict[Path, set[str]]:
    """The modules of the harness that a file imports, with the names that they have there."""
    found: dict[Path, set[str]] = {}
    package = ".".join(path.relative_to(INTEROP).parts[:-1])
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom):
            base = ".".join(part for part in ((package if node.level else ""), node.module or "") if part)
            for alias in node.names:
                for name in (base, f"{base}.{alias.name}"):
                    if module := module_path(name):
                        found.setdefault(module, set()).add(alias.asname or alias.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if module := module_path(alias.name):
                    found.setdefault(module, set()).add(alias.asname or alias.name.split(".")[0])
    return found


@cache
def fixtures() -> dict[str, set[Path]]:
    """The modules that each fixture of conftest.py uses, those of the fixtures that it takes too."""
    path = INTEROP / "conftest.py"
    functions = {node.name: node for node in tree_of(path).body if isinstance(node, ast.FunctionDef)}
    imported = names_by_module(path)

    def modules(name: str, seen: frozenset[str] = frozenset()) -> set[Path]:
        if name not in functions or name in seen:
            return set()
        used = {node.id for node in ast.walk(functions[name]) if isinstance(node, ast.Name)}
        used |= {node.arg for node in ast.walk(functions[name]) if isinstance(node, ast.arg)}
        # `getfixturevalue` takes a name as text.
        used |= {str(node.value) for node in ast.walk(functions[name]) if isinstance(node, ast.Constant)}
        own = {module for module, names in imported.items() if names & used}
        return own.union(*(modules(one, seen | {name}) for one in used if one != name))

    return {name: modules(name) for name in functions}


@cache
def uses(path: Path) -> frozenset[Path]:
    """A file of tests or of the harness, and all that it uses by imports and fixtures."""
    found, waiting = {path}, [path]
    while waiting:
        one = waiting.pop()
        direct = set(names_by_module(one)) - {INTEROP / "conftest.py"}
        for node in ast.walk(tree_of(one)):
            if isinstance(node, ast.arg):
                direct |= fixtures().get(node.arg, set())
        waiting += direct - found
        found |= direct
    return frozenset(found)


def patterns(path: str, module: str | None) -> list[str]:
    """What a text says that names a changed file."""
    found = [re.escape(path)]
    if path.startswith("Sources/"):
        stem = Path(path).stem.split("+")[0]
        # One word, such as Node, says too many other things.
        if path.endswith(".swift") and re.search(r"[a-z0-9][A-Z]", stem):
            found.append(stem)
        # The program, nagare, is in every text.
        if module and module[0].isupper():
            found.append(module)
    else:
        parents = [str(one) for one in Path(path).parents if len(one.parts) > 1 and str(one) != "Tests/Interop"]
        found += [re.escape(one) for one in parents if not one.startswith("Tests/Interop/harness")]
        # Programs of the tests, such as pion, are named by their folders.
        if path.startswith("Tests/Interop/") and path.endswith(".go"):
            found.append(re.escape(Path(path).parent.name))
    if not path.endswith((".swift", ".py")):
        found.append(re.escape(Path(path).name))
    return [rf"(?<!\w){one}(?!\w)" for one in found]


def interop_files(changed: list[str], modules: dict[str, str | None]) -> set[Path]:
    tests = sorted(INTEROP.glob("test_*.py"))
    if any(path in EVERYWHERE or path == "Package.swift" for path in changed):
        return set(tests)
    found: set[Path] = set()
    for path in changed:
        folder = next((one for one in PAGES if path.startswith(one)), None)
        if folder:
            found |= {INTEROP / name for name in PAGES[folder]}
            continue
        expression = re.compile("|".join(patterns(path, modules.get(path))))
        module = (modules.get(path) or "").lower()
        for test in tests:
            is_named = module in test.stem.split("_")[1:] or any(
                one == REPOSITORY / path or expression.search(text_of(one)) for one in uses(test)
            )
            if is_named:
                found.add(test)
    return found


def main() -> None:
    revision = sys.argv[1] if len(sys.argv) > 1 and sys.argv[1] else default_revision()
    changed = changed_files(revision)
    print(f"{len(changed)} files differ from {revision}.", file=sys.stderr)
    manifest = Manifest()
    modules = {path: manifest.target_of(path) for path in changed}
    names = {name for name in modules.values() if name}
    if "Package.swift" in changed:
        names = {one["name"] for one in manifest.targets}
    tests = manifest.tests_of(names)
    if tests:
        print(f"targets={' '.join(tests)}")
    for folder, layer in (("Tests/Fuzz/", "fuzz"), ("Benchmarks/", "hot-path")):
        if any(path.startswith(folder) for path in changed):
            print(f"layer={layer}")
    for test in sorted(interop_files(changed, modules)):
        print(f"file={test.relative_to(REPOSITORY)}")


if __name__ == "__main__":
    main()
