"""Requests made from the server's own OpenAPI description, good and hostile ones, and limits."""

from __future__ import annotations

import http.client
import json
import logging
import random
from contextlib import closing
from urllib.parse import quote

import pytest

from live.feeds import START, config, write
from live.running import ask, running, until
from vace_ad.live.config import PluginSection
from vace_ad.live.sources.push import HttpSource

ROUNDS = 6  # requests of each operation and content type
WORDS = (
    "", "p1", "é💥", "\x00", "\ud800", "a" * 3000, "../..", "1", "-1", "1e999", "' or 1=1 --", "²",
)  # fmt: skip
VALUES = (
    None, True, -1, 0, 2**63, 10**400, 1e308, -0.0, START, [], {}, [[]], [[1, 2], [3]], *WORDS,
)  # fmt: skip
BODIES = (
    b"", b"{", b"[" * 100_000, b'{"a":' * 3000, b"\xff\xfe\x00", b"null", b"1e999", b'"\\ud800"',
    b"NaN", b'[{"time": NaN}]', b"\x0a\xff\xff\xff\xff\x0f", b"time,entity\n" + b"," * 10_000,
)  # fmt: skip
# What any route may answer, as HTTP says it: not understood, not allowed, not found, too long.
ANYWHERE = {400, 404, 405, 411, 414, 421}


@pytest.fixture
def pushed(tmp_path):
    """A watch that rows are pushed to, with few connections."""
    data = config(tmp_path, server={"address": "127.0.0.1:0", "connections": 8, "body": 200_000})
    object.__setattr__(data, "source", PluginSection("http", HttpSource.SETTINGS()))
    with running(data) as (watch, url):
        yield watch, url


def made(rng: random.Random, schema: dict) -> object:
    """A value of a schema, or one that is hostile in its place."""
    if rng.random() < 0.15:
        return rng.choice(VALUES)
    if "oneOf" in schema:
        return made(rng, rng.choice(schema["oneOf"]))
    if "enum" in schema:
        return rng.choice(schema["enum"])
    kinds = schema.get("type", "number")
    kind = rng.choice(kinds) if isinstance(kinds, list) else kinds
    if kind == "object":
        inner = schema.get("properties", {})
        names = [name for name in inner if name in schema.get("required", ()) or rng.random() < 0.7]
        found = {name: made(rng, inner[name]) for name in names}
        if "time" in found and rng.random() < 0.8:
            found["time"] = START + rng.randrange(10**12)
        more = schema.get("additionalProperties")
        return found if more is None else found | {"flow": made(rng, more), "x": made(rng, more)}
    if kind == "array":
        return [made(rng, schema["items"]) for _ in range(rng.randrange(4))]
    return {"string": rng.choice(WORDS), "integer": rng.randrange(10), "null": None}.get(
        kind, rng.uniform(-5, 5)
    )


def requests(description: dict, rng: random.Random):
    """Method, path, content type, body and the answers that are described."""
    for path, operations in description["paths"].items():
        if path == "/api/events":  # has no end
            continue
        for method, operation in operations.items():
            answers = {int(code) for code in operation["responses"]}
            for kind, content in operation.get("requestBody", {}).get("content", {"": {}}).items():
                for _ in range(ROUNDS):
                    body = None
                    if kind:
                        value = made(rng, content.get("schema", {}))
                        text = value if isinstance(value, str) else json.dumps(value)
                        body = text.encode("utf-8", "surrogatepass")
                        body = rng.choice(BODIES) if rng.random() < 0.3 else body
                    yield method.upper(), filled(rng, path, operation), kind, body, answers


def filled(rng: random.Random, path: str, operation: dict) -> str:
    query = []
    for one in operation["parameters"]:
        value = str(made(rng, one["schema"]))
        text = quote(value.encode("utf-8", "replace"), safe="")
        if one["in"] == "path":
            path = path.replace("{" + one["name"] + "}", text or "none")
        elif rng.random() < 0.7:
            query.append(f"{one['name']}={text}")
    return path + ("?" + "&".join(query) if query else "")


def test_every_request_has_an_answer_that_is_described(pushed):
    watch, url = pushed
    description = ask(f"{url}/openapi.json")[2]
    rng, seen = random.Random(29), set()
    with closing(http.client.HTTPConnection(url.removeprefix("http://"), timeout=20)) as line:
        for method, path, kind, body, answers in requests(description, rng):
            line.request(method, path, body, {"Content-Type": kind} if kind else {})
            answer = line.getresponse()
            text = answer.read()
            seen.add(answer.status)
            what = f"{method} {path[:200]} {kind} {(body or b'')[:200]!r}: {answer.status}"
            assert answer.status in answers | ANYWHERE, f"{what} {text[:200]!r}"
            if answer.status >= 400:
                assert b"Traceback" not in text, what
            if "json" in answer.headers.get("content-type", ""):
                json.loads(text)
    assert seen >= {200, 404, 409, 422}
    assert watch.status.ready
    assert ask(f"{url}/readyz")[0] == 200


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_other_methods_are_refused(pushed, method):
    _, url = pushed
    paths = ask(f"{url}/openapi.json")[2]["paths"]
    assert {ask(f"{url}{path}", method=method)[0] for path in paths} == {405}


def test_numbers_and_names_that_no_float_or_channel_has(pushed):
    _, url = pushed
    assert ask(f"{url}/score", {"rows": [[10**400, 0, 0]]})[0] == 422
    assert ask(f"{url}/score", {"rows": [[1, 2, 3]], "channels": [1, None, {}]})[0] == 422


def test_event_streams_are_bounded_and_given_back(pushed):
    watch, url = pushed
    where = url.removeprefix("http://")
    lines = [http.client.HTTPConnection(where, timeout=20) for _ in range(5)]
    try:
        for line in lines[:4]:
            line.request("GET", "/api/events")
            answer = line.getresponse()
            assert answer.status == 200
            assert answer.readline().startswith(b"retry")
        lines[4].request("GET", "/api/events")
        refused = lines[4].getresponse()
        assert refused.status == 503
        assert b"too many listeners" in refused.read()
        assert ask(f"{url}/healthz")[0] == 200
    finally:
        for line in lines:
            line.close()
    watch.status.tell("status", None)  # who is gone is noticed when something is sent

    def again():
        with closing(http.client.HTTPConnection(where, timeout=20)) as line:
            line.request("GET", "/api/events")
            return line.getresponse().status == 200

    until(again)


def test_names_of_entities_are_bounded(pushed):
    watch, url = pushed
    longest = "e" * 200
    for name, status in ((longest, 200), (longest + "e", 422), ("a\x07b", 422), ("", 422)):
        assert ask(f"{url}/api/rows", [{"time": START, "entity": name, "flow": 1.0}])[0] == status
    until(lambda: set(watch.known) == {longest})


def test_a_secret_is_in_no_log_and_no_metric(tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("TOKEN", "s3cret-token")
    write(tmp_path, [])
    data = config(tmp_path, server={"address": "0.0.0.0:0", "token_env": "TOKEN"})
    with running(data) as (watch, url):
        good = {"Authorization": "Bearer s3cret-token"}
        texts = [str(ask(f"{url}{path}", headers=good)[1:]) for path in
                 ("/metrics", "/api/status", "/openapi.json", "/readyz")]  # fmt: skip
        ask(f"{url}/api/status?token=s3cret-token")
        ask(f"{url}/api/rows", b"x", {**good, "Content-Type": "text/csv"})
        texts += [repr(watch.config), str(watch.config.server), repr(watch)]
    shown = "\n".join([*texts, *(f"{one.getMessage()} {one.args}" for one in caplog.records)])
    assert "s3cret" not in shown


def test_no_option_of_a_command_takes_a_secret():
    """Arguments are in the list of processes, which everybody on the machine reads."""
    import typer

    from vace_ad.cli.main import app

    secret = ("token", "password", "secret", "key-value")
    command = typer.main.get_command(app)
    for name, one in command.commands.items():
        options = [option for parameter in one.params for option in parameter.opts]
        assert not [option for option in options if any(word in option for word in secret)], name
