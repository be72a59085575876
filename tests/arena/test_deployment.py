"""Tests of the systemd unit, the image and the compose file: their commands start an arena."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import httpx

from harness.cli import main
from harness.protocol.files import cache_directory
from tests.arena.submitting import free_port
from tests.sources import BROKEN
from tests.waiting import PATIENCE, eventually

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UNIT = dict(
    re.findall(r"^(\w+)=(.*)$", (DEPLOY / "matmul-arena.service").read_text(), re.MULTILINE)
)
IMAGE = (DEPLOY / "Dockerfile").read_text()
COMPOSE = (DEPLOY / "compose.yaml").read_text()


def named(pattern: str, text: str) -> str:
    """Return the one value of a line of one of the files."""
    (value,) = re.findall(rf"^\s*{pattern}$", text, re.MULTILINE)
    return str(value)


def after_session(words: list[str]) -> list[str]:
    """Return the words after `nox -s`, which are the command's own."""
    return [word for word in words[words.index("-s") + 1 :] if word != "--"]


SERVICE = after_session(shlex.split(UNIT["ExecStart"]))
CONTAINER = after_session(json.loads(named("ENTRYPOINT (.*)", IMAGE)))


def test_every_option_of_the_deployed_commands_exists() -> None:
    behind_proxy = json.loads(named("# command: (.*)", COMPOSE))
    for words in (SERVICE, CONTAINER, CONTAINER + behind_proxy):
        parsed = main.parse(words)
        assert parsed.what == "run" and parsed.data.is_absolute()


def test_the_deployed_paths_agree() -> None:
    built = (DEPLOY / named("context: (.*)", COMPOSE)).resolve()
    assert built == ROOT and (built / named("dockerfile: (.*)", COMPOSE)).is_file()
    mounted = set(re.findall(r"^ +- \w+:(/.*)$", COMPOSE, re.MULTILINE))
    workdir = named("WORKDIR (.*)", IMAGE)
    assert set(named("VOLUME (.*)", IMAGE).split()) == mounted == {"/data", f"{workdir}/.nox"}
    assert main.parse(CONTAINER).data == Path("/data")
    data = main.parse(SERVICE).data
    assert data == Path("/var/lib", UNIT["StateDirectory"])
    assert UNIT["Environment"] == "XDG_CACHE_HOME=/var/cache"
    assert UNIT["CacheDirectory"] == cache_directory().name
    assert UNIT["ExecStart"].startswith(f"{UNIT['WorkingDirectory']}/nox/bin/nox -s arena ")


def test_the_command_of_the_unit_runs_an_arena(folder: Path) -> None:
    """It starts, shows a key, serves people behind a proxy that removes TLS and a path, grades a
    submission, logs that, and ends. Its user has no home."""
    words, port = list(SERVICE), free_port()
    words[words.index("--data") + 1] = str(folder / "data")
    (folder / "data").mkdir(mode=0o700)
    (folder / "data" / "rules.toml").write_text("[limits]\nper_address_per_minute = 20\n")
    command = [sys.executable, "-m", "harness", *words, "--port", str(port), "--root", "/arena"]
    environment = {**os.environ, "HOME": "/proc/nowhere", "XDG_CACHE_HOME": str(folder / "cache")}
    (folder / "cache").mkdir()
    # To compile the CPU device's runtime again takes ten seconds.
    (folder / "cache" / cache_directory().name).symlink_to(cache_directory())
    output, log = folder / "output", folder / "log"
    behind_proxy = {
        "Host": "arena.example.org",
        "X-Forwarded-For": "10.0.0.1",
        "X-Forwarded-Proto": "https",
    }
    with (
        open(output, "w") as out,
        open(log, "w") as errors,
        subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=errors, env=environment) as arena,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=behind_proxy) as client,
    ):
        try:
            eventually(lambda: "The arena is at" in output.read_text(), "the arena answers")
            key = re.search(r"The organiser's key is (\S+)", output.read_text())
            check_proxied(client, key[1])
            client.headers["Authorization"] = f"Bearer {key[1]}"
            sent = client.post("/api/v1/submissions", content=BROKEN)
            id = sent.json()["id"]
            assert sent.headers["location"] == f"/arena/api/v1/submissions/{id}"
            events = f"/api/v1/submissions/{id}/events"
            with client.stream("GET", events, timeout=PATIENCE) as stream:
                lines = [line for line in stream.iter_lines() if line.startswith("data: ")]
            assert json.loads(lines[-1].removeprefix("data: "))["verdict"] == "compile-error"
            eventually(lambda: logged(log, id)[1:], "its log says so")
            assert logged(log, id) == ["grading", "graded"]
        finally:
            arena.terminate()
    assert arena.returncode == 0


def check_proxied(client: httpx.Client, key: str) -> None:
    """Check links, cookies and limits. Each address that the proxy names has its own limit."""
    script = client.get("/submit.py")
    assert "https://arena.example.org" in script.text
    assert "strict-transport-security" in script.headers
    assert 'href="/arena/assets/site.css"' in client.get("/account").text
    assert client.get("/assets/site.css").status_code == 200
    answer = client.post("/signin", data={"key": key})
    assert answer.headers["location"] == "/arena/submit"
    cookie = answer.headers["set-cookie"].lower()
    for attribute in ("secure", "httponly", "samesite=lax", "path=/arena/"):
        assert attribute in cookie
    session, _, _ = answer.headers["set-cookie"].partition(";")
    assert client.get("/submit", headers={"Cookie": session}).status_code == 200

    def asks(address: str) -> int:
        return client.get("/problem", headers={"X-Forwarded-For": address}).status_code

    while (status := asks("10.0.0.7")) == 200:
        pass
    assert status == 429, "one address has asked too much"
    assert asks("10.0.0.8") != 429
    elsewhere = httpx.HTTPTransport(local_address="127.0.0.2")
    with httpx.Client(base_url=client.base_url, transport=elsewhere) as stranger:
        sent = [{"X-Forwarded-For": f"10.0.1.{number}"} for number in range(40)]
        assert 429 in {stranger.get("/problem", headers=each).status_code for each in sent}


def logged(log: Path, submission: str) -> list[str]:
    """Return the messages of a log about a submission."""
    lines = [json.loads(line) for line in log.read_text().splitlines() if submission in line]
    return [line["message"] for line in lines if line.get("submission") == submission]
