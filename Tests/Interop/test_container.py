"""The Dockerfile and the Compose file, as far as they can be checked without a container engine. The final stage is executed
in a minimal system; the stage of the build is what ops/test does."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

import httpx
import pytest
import yaml

from harness.installed import REPOSITORY, InstalledNode, in_system, installed_system, run
from harness.node import BINARY, ENVIRONMENT

# The packages are made and installed here.
pytestmark = pytest.mark.timeout(300)


@dataclass
class Instruction:
    name: str
    text: str


def instructions() -> list[list[Instruction]]:
    """The instructions of each stage."""
    text = (REPOSITORY / "ops/Dockerfile").read_text()
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    stages: list[list[Instruction]] = []
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        name, _, rest = line.partition(" ")
        if name == "FROM":
            stages.append([])
        stages[-1].append(Instruction(name, rest.strip()))
    return stages


def the(name: str) -> str:
    """The text of an instruction that the final stage has once."""
    (found,) = (one.text for one in instructions()[-1] if one.name == name)
    return found


@pytest.fixture(scope="module")
def root(packages: Path, minimal_system: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The file system of the image."""
    script = re.sub(r"^--mount=\S+", "", the("RUN"))
    yield from installed_system(tmp_path_factory.mktemp("image"), minimal_system, packages, script)


@pytest.mark.static
def test_the_stages_have_the_known_instructions() -> None:
    build, final = ([one.name for one in stage] for stage in instructions())
    assert build == ["FROM", "WORKDIR", "COPY", "RUN", "COPY", "COPY", "COPY", "COPY", "ARG", "ARG", "RUN"], build
    assert final == ["FROM", "RUN", "USER", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD"], final


def test_what_is_copied_exists_and_is_what_the_build_needs(tmp_path: Path) -> None:
    """The package is made from what the Dockerfile copies, and the manifest of SwiftPM is complete."""
    for one in instructions()[0]:
        if one.name != "COPY":
            continue
        *sources, target = shlex.split(one.text)
        for source in sources:
            assert (REPOSITORY / source).exists(), f"COPY {source}"
            # COPY copies the contents of a folder.
            path = tmp_path / target / ("" if (REPOSITORY / source).is_dir() else source.split("/")[-1])
            path.parent.mkdir(parents=True, exist_ok=True)
            run("cp", "-a", "-T" if (REPOSITORY / source).is_dir() else "-v", REPOSITORY / source, path)
    (tmp_path / ".build").mkdir()
    (tmp_path / ".build/checkouts").symlink_to(REPOSITORY / ".build/checkouts")
    run("swift", "package", "dump-package", cwd=tmp_path)
    arguments = instructions()[0][-1].text.replace("/packages", str(tmp_path / "out"))
    run("bash", "-c", f"{arguments} --binary {BINARY}", cwd=tmp_path, env=build_environment(tmp_path))
    assert len(list((tmp_path / "out").iterdir())) == 2


def build_environment(folder: Path) -> dict[str, str]:
    """Without a git repository, and the arguments' values."""
    defaults = (one.text.split("=", 1) for one in instructions()[0] if one.name == "ARG")
    path = subprocess.run(["bash", "-c", "echo $PATH"], capture_output=True, text=True, check=True).stdout.strip()
    values = {name: value.strip('"') for name, value in defaults}
    return {"PATH": path, "HOME": str(folder), "GIT_CEILING_DIRECTORIES": str(folder.parent), **values}


def test_the_packages_of_the_build_exist() -> None:
    """They are those that ops/run installs on this machine."""
    (install, _) = (one.text for one in instructions()[0] if one.name == "RUN")
    run("bash", "-ec", install, cwd=REPOSITORY)


@pytest.mark.static
@pytest.mark.parametrize("name", ["HEALTHCHECK", "ENTRYPOINT", "CMD"])
def test_an_array_is_json(name: str) -> None:
    array = json.loads(re.search(r"\[.*", the(name)).group())
    assert array and all(isinstance(part, str) for part in array)


def test_the_image_runs_a_node_that_is_healthy(root: Path, artifacts: Path) -> None:
    assert the("USER") == "nagare" and not (root / "etc/nagare/token").exists()
    command = json.loads(the("ENTRYPOINT")) + json.loads(the("CMD"))
    check = json.loads(re.search(r"CMD (\[.*)", the("HEALTHCHECK")).group(1))
    with InstalledNode(root, artifacts / "node-image.log", command) as node:
        assert httpx.get(node.origin).status_code == 200
        # bash opens /dev/tcp/... itself, but the standard descriptors of the check are files.
        in_system(root, *check, NAGARE_ADMIN=node.admin)
    with pytest.raises(AssertionError):
        in_system(root, *check, NAGARE_ADMIN=node.admin)


@pytest.mark.static
def test_the_image_has_the_ports_of_the_node() -> None:
    text = (REPOSITORY / "ops/nagare.example.yaml").read_text()
    ports = {int(port) for port in re.findall(r"^# (?:http|admin): [0-9.]+:(\d+)$", text, flags=re.MULTILINE)}
    exposed = {int(part.split("/")[0].split("-")[0]) for part in the("EXPOSE").split()}
    assert len(ports) == 2 and ports <= exposed, (ports, exposed)


@pytest.fixture(scope="module")
def compose() -> dict:
    return yaml.safe_load((REPOSITORY / "ops/compose.yaml").read_text())


@pytest.fixture(scope="module")
def nodes(compose: dict) -> dict[str, dict[str, str]]:
    """The variables of the nodes of the cluster, by the service."""
    services = yaml.safe_load((REPOSITORY / "ops/compose.cluster.yaml").read_text())["services"]
    base = compose["services"]["nagare"]["environment"]
    for name in ("nagare-b", "nagare-c"):
        assert services[name]["extends"] == {"file": "compose.yaml", "service": "nagare"}
    return {name: {**base, **services[name]["environment"]} for name in services if name.startswith("nagare")}


@pytest.mark.static
@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("compose.yaml", {"NAGARE_TOKEN", "NAGARE_DOMAIN"}),
        ("compose.cluster.yaml", {"NAGARE_CLUSTER_SECRET", "NAGARE_DOMAIN"}),
    ],
)
def test_compose_asks_for_secrets_and_a_name(file: str, names: set[str]) -> None:
    assert set(re.findall(r"\$\{(\w+):\?", (REPOSITORY / "ops" / file).read_text())) == names


def test_compose_sets_only_settings_of_the_node(nodes: dict[str, dict[str, str]]) -> None:
    text = run(BINARY, "settings")
    settings = set(re.findall(r"^# ([a-z][a-z0-9-]*):(?: |$)", text, flags=re.MULTILINE))
    for variable in {name for variables in nodes.values() for name in variables}:
        assert variable.removeprefix("NAGARE_").lower().replace("_", "-") in settings, variable


@pytest.mark.static
def test_what_compose_names_exists(compose: dict) -> None:
    folder = REPOSITORY / "ops"
    for name, service in compose["services"].items():
        if "build" in service:
            context = folder / service["build"]["context"]
            assert (context / service["build"]["dockerfile"]).is_file()
        for config in service.get("configs", []):
            assert config["source"] in compose["configs"], name
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            # The engine makes the folder of certificates if there is none.
            is_there = (folder / source).exists() or source == "./certificates"
            assert is_there if source.startswith(".") else source in compose["volumes"], volume


@pytest.mark.static
def test_prometheus_asks_every_node_of_the_cluster_in_compose(nodes: dict[str, dict[str, str]]) -> None:
    files = [yaml.safe_load((REPOSITORY / "ops" / name).read_text()) for name in ("prometheus.yml", "compose.cluster.yaml")]
    alone, cluster = files[0], yaml.safe_load(files[1]["configs"]["prometheus"]["content"])
    (targets,) = [one["static_configs"][0].pop("targets") for one in cluster["scrape_configs"]]
    (first,) = [one["static_configs"][0].pop("targets") for one in alone["scrape_configs"]]
    assert cluster == alone
    admin = [re.sub(r"^\$\{\w+:-(.*)\}$", r"\1", variables["NAGARE_ADMIN"]) for variables in nodes.values()]
    assert (first, targets) == (admin[:1], admin)


# A network of its own, where the ports are free, and without the files of a node of this machine.
CLUSTER = """
set -euo pipefail
ip link set lo up
ip link add near type veth peer name far
ip address add 198.18.0.1/24 dev near
ip link set near up
mkdir -p /var/lib/nagare
mount -t tmpfs none /var/lib/nagare
(exec -a redis-server redis-check-rdb --bind 127.0.0.1 --port 6379 --save '') >/dev/null &
until (: </dev/tcp/127.0.0.1/6379) 2>/dev/null; do sleep 0.1; done
"""


def test_the_nodes_of_the_cluster_in_compose_find_each_other(nodes: dict[str, dict[str, str]]) -> None:
    given = {"NAGARE_TOKEN": "t" * 32, "NAGARE_CLUSTER_SECRET": "s" * 64}
    script = CLUSTER
    for variables in nodes.values():
        # Compose puts in what the environment has, and what follows :- without.
        values = {
            name: re.sub(r"\$\{(\w+):[-?]([^}]*)\}", lambda m: given.get(m[1], m[2] if ":-" in m[0] else ""), str(value))
            for name, value in variables.items()
        }
        words = [f"{name}={value}" for name, value in values.items() if value]
        script += shlex.join(["env", *words, "NAGARE_LOOPS=1", str(BINARY), "serve"]) + " &\n"
    script += """
    for _ in $(seq 600); do
        found=$(curl --silent --max-time 2 http://127.0.0.1:3000/clusterz || true)
        if [ "$(grep -o '"state":"ready"' <<<"$found" | wc -l)" = 3 ]; then echo "$found"; exit 0; fi
        sleep 0.1
    done
    echo "no cluster: $found"
    exit 1
    """
    # The programs end with their namespace of processes.
    space = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    found = run(*space, "bash", "-c", script, env=ENVIRONMENT, timeout=120)
    for name in ("node-a", "node-b", "node-c"):
        assert f'"name":"{name}"' in found, found
