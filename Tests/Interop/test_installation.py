"""A call between two machines over HTTPS, by the commands of the README alone."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Iterator

import pytest
from playwright.sync_api import Playwright

from harness.builtin import BuiltInPage
from harness.certificate import make_certificate
from harness.chromium import EXECUTABLE, FLAGS, Chromium
from harness.installed import REPOSITORY, InstalledNode, in_system, installed_system, service_command
from harness.network import NODE_ADDRESS, NODE_NAME, Network

# The packages are made and installed here.
pytestmark = pytest.mark.timeout(300)

(COMMANDS,) = re.findall(
    r"^```sh installation\n(.*?)^```$", (REPOSITORY / "README.md").read_text(), flags=re.MULTILINE | re.DOTALL
)
# The minimal system has no sudo, and no service manager: the test starts what the service would.
PREPARATION = """
for name in sudo systemctl; do printf '#!/bin/sh\n' >/usr/local/bin/$name && chmod +x /usr/local/bin/$name; done
echo 'exec "$@"' >>/usr/local/bin/sudo
cd /packages
"""


@pytest.fixture
def root(packages: Path, minimal_system: Path, tmp_path: Path) -> Iterator[Path]:
    """A minimal system with the package, which has what the README's commands need in a folder."""
    folder = tmp_path / "system"
    folder.mkdir()
    yield from installed_system(folder, minimal_system, packages, "true")


def test_two_machines_have_a_call_by_the_commands_of_the_readme(
    root: Path, playwright: Playwright, tmp_path: Path, artifacts: Path
) -> None:
    certificate = make_certificate(tmp_path, NODE_ADDRESS, NODE_NAME)
    shutil.copy(certificate.chain, root / "packages/fullchain.pem")
    shutil.copy(certificate.key, root / "packages/privkey.pem")
    script = PREPARATION + COMMANDS.replace("sudo apt install", "sudo apt-get install -y -qq --no-install-recommends")
    printed = in_system(root, "bash", "-ec", script)
    token = printed.split()[-1]
    network = Network(tmp_path, passes_udp=True)
    try:
        log = artifacts / "node-installation.log"
        with InstalledNode(root, log, service_command(root), is_configured=True):
            flags = [*FLAGS, f"--ignore-certificate-errors-spki-list={certificate.key_hash}"]
            browsers = [Chromium(playwright, flags, network.program(EXECUTABLE)) for _ in range(2)]
            pages = [BuiltInPage(browser.page(f"https://{NODE_NAME}")) for browser in browsers]
            for page, name in zip(pages, ("Hanako", "Otto")):
                page.open("meeting")
                page.give_token(token)
                page.join(None, name=name, source="camera")
            for page in pages:
                page.sees(1)
            pages[0].tab.screenshot(path=artifacts / "installation.png")
            for browser in browsers:
                browser.close()
    finally:
        network.close()
