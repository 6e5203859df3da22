"""The Helm chart: rendered by the template engine of Helm, and checked against the schemas of Kubernetes and the node's
settings. `ops/build-go Tests/Interop/chart .build-peers/chart` builds the renderer."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Callable

import jsonschema
import kubernetes_validate
import pytest
import yaml

from harness.node import BINARY, LOOPBACK, Node

REPOSITORY = Path(__file__).resolve().parents[2]
CHART = REPOSITORY / "ops/helm/nagare"
RENDERER = REPOSITORY / ".build-peers/chart"
ALERTS = REPOSITORY / "ops/alerts.yml"
# Their schemas are those of the Prometheus operator.
OPERATOR_KINDS = ("PodMonitor", "PrometheusRule")
# The oldest version that the chart supports, and a current one.
KUBERNETES = ("1.27", "1.37")

CLUSTER = {
    "replicas": 3,
    "cluster": {"enabled": True, "store": "redis://valkey:6379", "secret": {"name": "link"}, "region": "eu", "zone": "a"},
}
VALUES: dict[str, dict] = {
    "the defaults": {},
    "everything without a cluster": {
        "image": {"repository": "registry.example/nagare", "tag": "1.2.3"},
        "imagePullSecrets": [{"name": "registry"}],
        "loops": 4,
        "announce": "host",
        "auth": {"tokenSecret": {"name": "token"}, "adminTokenSecret": {"name": "admin"}},
        "tls": {"secretName": "tls"},
        "admin": {"address": "0.0.0.0"},
        "config": {
            "log-format": "json", "grace": 20, "drain-deadline": 900,
            "admin-tls-cert": "/etc/nagare/tls/tls.crt", "admin-tls-key": "/etc/nagare/tls/tls.key",
        },
        "service": {"type": "LoadBalancer", "annotations": {"example.org/a": "b"}},
        "ingress": {"enabled": True, "className": "nginx", "tlsSecretName": "tls", "annotations": {"example.org/a": "b"}},
        "podMonitor": {
            "enabled": True, "tlsConfig": {"serverName": "nagare.example.org"}, "labels": {"release": "prometheus"}
        },
        "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
        "podAnnotations": {"example.org/a": "b"},
        "podLabels": {"team": "media"},
        "nodeSelector": {"pool": "media"},
        "tolerations": [{"key": "media", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}
        ],
        "priorityClassName": "media",
    },
    "addresses": {"announce": ["203.0.113.7", "2001:db8::7"]},
    "a cluster": CLUSTER,
    "a cluster whose store has a password": {
        **CLUSTER,
        "cluster": {**CLUSTER["cluster"], "store": "", "storeSecret": {"name": "store"}},
    },
}


def render(values: dict) -> subprocess.CompletedProcess:
    return subprocess.run(
        [RENDERER, CHART, "media"], input=yaml.safe_dump(values), capture_output=True, text=True, check=False
    )


def resources(values: dict) -> list[dict]:
    """What Helm would send to Kubernetes."""
    result = render(values)
    assert result.returncode == 0, result.stderr
    texts = [text for name, text in json.loads(result.stdout).items() if name.endswith(".yaml")]
    return [one for text in texts for one in yaml.safe_load_all(text) if one]


def the(kind: str, values: dict) -> dict:
    """The first resource of a kind."""
    return next(one for one in resources(values) if one["kind"] == kind)


def pod(values: dict) -> dict:
    return the("StatefulSet", values)["spec"]["template"]["spec"]


def configuration(values: dict) -> dict:
    return yaml.safe_load(the("ConfigMap", values)["data"]["nagare.yaml"])


@pytest.fixture(scope="module")
def settings() -> set[str]:
    """The settings of the node."""
    text = subprocess.run([BINARY, "settings"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^# ([a-z][a-z0-9-]*):(?: |$)", text, flags=re.MULTILINE))


def test_the_chart_has_what_helm_requires() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["apiVersion"] == "v2" and chart["type"] == "application"
    assert chart["name"] == CHART.name
    semantic = r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?"
    assert re.fullmatch(semantic, chart["version"]), chart["version"]
    version = subprocess.run([BINARY, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    assert chart["appVersion"] == version, "the chart's appVersion is not the program's version"


@pytest.mark.static
@pytest.mark.parametrize("name", VALUES)
def test_the_values_match_their_schema(name: str) -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.validate(yaml.safe_load((CHART / "values.yaml").read_text()), schema)
    jsonschema.validate(VALUES[name], schema)


@pytest.mark.static
@pytest.mark.parametrize(
    "values",
    [{"replica": 1}, {"ports": {"http": 70000}}, {"ports": {"http": 443}}, {"announce": "there"}, {"loops": 0}],
)
def test_a_mistake_in_the_values_is_refused(values: dict) -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(values, schema)


@pytest.mark.static
def test_the_schema_has_every_value_and_no_other() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    # Helm adds "global" for charts that contain others.
    assert set(schema["properties"]) - {"global"} == set(values)


@pytest.mark.static
def test_every_value_is_used() -> None:
    templates = "".join(one.read_text() for one in (CHART / "templates").iterdir())
    for name in yaml.safe_load((CHART / "values.yaml").read_text()):
        assert f".Values.{name}" in templates, name


@pytest.mark.static
@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("name", VALUES)
def test_kubernetes_accepts_the_resources(name: str, version: str) -> None:
    found = resources(VALUES[name])
    for one in found:
        if one["kind"] not in OPERATOR_KINDS:
            kubernetes_validate.validate(one, version, strict=True)
    kinds = sorted(one["kind"] for one in found if one["kind"] not in ("Ingress", *OPERATOR_KINDS))
    assert kinds == ["ConfigMap", "PodDisruptionBudget", "Service", "Service", "StatefulSet"]


@pytest.mark.static
@pytest.mark.parametrize("name", VALUES)
def test_names_and_ports_are_valid_and_unique(name: str) -> None:
    names = [(one["kind"], one["metadata"]["name"]) for one in resources(VALUES[name])]
    assert len(set(names)) == len(names), names
    ports = pod(VALUES[name])["containers"][0]["ports"]
    assert all(re.fullmatch(r"[a-z0-9-]{1,15}", one["name"]) for one in ports), ports
    for key in ("name", None):
        keys = [one[key] if key else (one["protocol"], one["containerPort"]) for one in ports]
        assert len(set(keys)) == len(keys), keys


@pytest.mark.static
@pytest.mark.parametrize("name", VALUES)
def test_what_the_pod_mounts_exists(name: str) -> None:
    spec = pod(VALUES[name])
    mounted = {one["name"] for one in spec["containers"][0]["volumeMounts"]}
    assert mounted == {one["name"] for one in spec["volumes"]}
    folders = [one["mountPath"] for one in spec["containers"][0]["volumeMounts"]]
    for setting in configuration(VALUES[name]).values():
        if isinstance(setting, str) and setting.lstrip("@").startswith("/etc/"):
            assert any(setting.lstrip("@").startswith(folder) for folder in folders), setting


@pytest.mark.static
@pytest.mark.parametrize("name", VALUES)
def test_services_and_budget_select_the_pods(name: str) -> None:
    labels = the("StatefulSet", VALUES[name])["spec"]["template"]["metadata"]["labels"]
    for one in resources(VALUES[name]):
        selector = one["spec"].get("selector") if one["kind"] != "ConfigMap" and "spec" in one else None
        if selector:
            selector = selector.get("matchLabels", selector)
            assert selector.items() <= labels.items(), one["kind"]


@pytest.mark.static
@pytest.mark.parametrize("name", VALUES)
def test_the_pod_may_drain_before_it_is_killed(name: str) -> None:
    values = VALUES[name]
    grace = pod(values)["terminationGracePeriodSeconds"]
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    settings = {"drain-deadline": values.get("drainDeadline", defaults["drainDeadline"]), "grace": 10}
    settings |= values.get("config", {})
    assert grace >= settings["drain-deadline"] + settings["grace"] + 20
    probes = pod(values)["containers"][0]
    assert probes["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert probes["readinessProbe"]["httpGet"]["path"] == "/readyz"
    scheme = "HTTPS" if "admin-tls-cert" in configuration(values) else None
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert probes[name]["httpGet"].get("scheme") == scheme


@pytest.mark.parametrize("name", VALUES)
def test_the_chart_sets_only_settings_of_the_node(name: str, settings: set[str]) -> None:
    assert set(configuration(VALUES[name])) <= settings
    for variable in pod(VALUES[name])["containers"][0]["env"]:
        if variable["name"].startswith("NAGARE_"):
            assert variable["name"].removeprefix("NAGARE_").lower().replace("_", "-") in settings, variable


def test_a_node_starts_with_the_configuration_of_the_chart(own_node: Callable[..., Node], tmp_path: Path) -> None:
    path = tmp_path / "nagare.yaml"
    path.write_text(the("ConfigMap", {})["data"]["nagare.yaml"])
    # The node's ports are the test's own.
    own_node("--config", str(path), "--announce", LOOPBACK, "--drain-deadline", "0", is_development=False)


@pytest.mark.static
def test_the_operator_gets_the_alert_rules_of_the_repository() -> None:
    assert not [one for one in resources({}) if one["kind"] in OPERATOR_KINDS], "off by default"
    rule = the("PrometheusRule", VALUES["everything without a cluster"])
    assert rule["spec"] == yaml.safe_load(ALERTS.read_text())
    assert rule["metadata"]["labels"]["release"] == "prometheus"
    # What a chart's package holds is the same file.
    assert (CHART / "alerts.yml").resolve() == ALERTS.resolve()


@pytest.mark.static
def test_the_job_of_the_pod_monitor_is_the_one_of_the_alerts() -> None:
    values = VALUES["everything without a cluster"]
    monitor = the("PodMonitor", values)
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    labels = the("StatefulSet", values)["spec"]["template"]["metadata"]["labels"]
    job = labels[monitor["spec"]["jobLabel"]]
    assert set(re.findall(r'job="([^"]*)"', ALERTS.read_text())) == {job}


REFUSED = {
    "several nodes without a cluster": ({"replicas": 2}, "cluster.enabled"),
    "a cluster without a store": ({"cluster": {"enabled": True, "secret": {"name": "link"}}}, "cluster.store"),
    "a cluster without a secret": ({"cluster": {"enabled": True, "store": "redis://a:1"}}, "cluster.secret.name"),
    "a public admin address without a token": ({"admin": {"address": "0.0.0.0"}}, "auth.adminTokenSecret.name"),
    "metrics that cannot be reached": ({"podMonitor": {"enabled": True}}, "admin.address"),
}


@pytest.mark.static
@pytest.mark.parametrize("values, named", REFUSED.values(), ids=REFUSED.keys())
def test_values_that_cannot_work_are_refused(values: dict, named: str) -> None:
    result = render(values)
    assert result.returncode != 0 and named in result.stderr, result.stderr


@pytest.mark.static
def test_the_notes_warn_of_an_open_node() -> None:
    notes = [json.loads(render(values).stdout)["NOTES.txt"] for values in ({}, VALUES["everything without a cluster"])]
    assert "ANYONE" in notes[0] and "ANYONE" not in notes[1]
