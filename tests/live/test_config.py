import re
import sys
import tomllib
from importlib import import_module
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from live.running import until
from live.servers import prometheus
from vace_ad.errors import ConfigError, MissingExtraError
from vace_ad.live.config import load_config, template
from vace_ad.live.plugins import kinds

GOOD = """
[source]
kind = "csv"
path = "plant.csv"
[align]
step = "10s"
lateness = "30s"
fill = "hold"
[model]
file = "pump.vace"
[alarms]
budget = "2 per day"
[[sink]]
kind = "stdout"
[[sink]]
kind = "stdout"
[state]
path = "plant.state"
[server]
address = "127.0.0.1:8490"
"""


def load(tmp_path, text):
    path = tmp_path / "plant.toml"
    path.write_text(text)
    return load_config(path)


def test_a_good_file(tmp_path):
    config = load(tmp_path, GOOD)
    assert config.align.step == 10 * 10**9
    assert config.align.lateness == 30 * 10**9
    assert (config.budget.amount, config.budget.per) == (2, "day")
    assert config.model.file == tmp_path / "pump.vace"
    assert [sink.name for sink in config.sinks] == ["stdout", "stdout-2"]
    assert config.link == "http://127.0.0.1:8490"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('step = "10s"', 'stepp = "10s"', "align.stepp is not a key here; did you mean 'step'?"),
        ('step = "10s"', "step = 10", "align.step = 10: must be a duration such as"),
        ("[align]", "[aling]", "[aling] is not a section; did you mean 'align'?"),
        ('fill = "hold"', 'fill = "hols"', "did you mean 'hold'?"),
        ('kind = "csv"', 'kind = "cvs"', "source.kind = 'cvs': must be one of csv, jsonl"),
        ('kind = "csv"', "", "source.kind is missing"),
        ('path = "plant.csv"', "", "source.path is missing"),
        ('budget = "2 per day"', 'budget = "2"', "'1 per week'"),
        ('file = "pump.vace"', "", "one of file"),
        ('file = "pump.vace"', 'file = "a"\nlearn = "14d"', "one of file"),
        ("[state]", "[stat]", "[stat] is not a section; did you mean 'state'?"),
        ("127.0.0.1:8490", "0.0.0.0:8490", "needs a token"),
        ("127.0.0.1:8490", "127.0.0.1", "host and port"),
        ("127.0.0.1:8490", '127.0.0.1:8490"\ntoken = "abc', "a secret does not stand in this file"),
        ("[server]", "[server", "is not TOML"),
        (
            'step = "10s"',
            'step = "10s"\ngap = 0',
            "align.gap = 0: must be a whole number from 1 to",
        ),
        ('step = "10s"', 'step = "10s"\ngap = true', "must be a whole number from 1 to 1000000"),
        (
            "plant.csv",
            'plant.csv"\nname = "',
            "source.name = '': must be a string that is not empty",
        ),
        ('path = "plant.csv"', "path = 5", "source.path = 5: must be a string"),
        (
            'path = "plant.csv"',
            'path = "plant.csv"\nfollow = "yes"',
            "source.follow = 'yes': must be true or false",
        ),
        ("127.0.0.1:8490", '127.0.0.1:8490"\ntoken_file = "none', "server.token_file: "),
        ('step = "10s"', "", "needs align.step"),
        (
            'kind = "csv"\npath = "plant.csv"\n[align]\nstep = "10s"\nlateness = "30s"\n'
            'fill = "hold"',
            'kind = "mqtt"\nurl = "mqtt://a"\ntopics = "a/+/+"',
            "brings single readings",
        ),
    ],
)
def test_every_mistake_has_its_place_and_what_is_allowed(tmp_path, old, new, words):
    assert old in GOOD
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, GOOD.replace(old, new))
    assert str(caught.value).startswith(f"{tmp_path / 'plant.toml'}: ")
    assert words in str(caught.value)


def test_a_missing_file_says_how_to_write_one(tmp_path):
    with pytest.raises(ConfigError, match="--init"):
        load_config(tmp_path / "none.toml")


def test_secrets_come_from_the_environment_or_a_file_and_are_never_shown(tmp_path, monkeypatch):
    text = GOOD.replace("127.0.0.1:8490", '0.0.0.0:8490"\ntoken_env = "VACE_TOKEN')
    with pytest.raises(ConfigError, match="VACE_TOKEN is not set"):
        load(tmp_path, text)
    monkeypatch.setenv("VACE_TOKEN", "very-secret")
    config = load(tmp_path, text)
    assert config.server.secret("token") == "very-secret"
    assert "very-secret" not in repr(config)
    hook = '[[sink]]\nkind = "webhook"\nurl = "http://a.b/c"\ntoken_file = "%s"\n[state]'
    file = tmp_path / "token"
    file.write_text("other-secret\n")
    config = load(tmp_path, GOOD.replace("[state]", hook % file))
    assert config.sinks[-1].settings.secret("token") == "other-secret"
    assert "other-secret" not in repr(config)


def test_files_of_secrets_are_relative_to_the_file(tmp_path):
    (tmp_path / "token").write_text("from-a-file\n")
    text = GOOD.replace("127.0.0.1:8490", '0.0.0.0:8490"\ntoken_file = "token')
    assert load(tmp_path, text).server.secret("token") == "from-a-file"


def test_without_pydantic_the_line_that_installs_it_is_shown(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydantic", None)
    for name in [name for name in sys.modules if name.startswith("vace_ad.live.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingExtraError, match=r"pip install 'vace-ad\[live\]'"):
        import_module("vace_ad.live.service")


def test_a_password_in_an_address_is_refused_and_not_repeated(tmp_path):
    hook = '[[sink]]\nkind = "webhook"\nurl = "http://me:hunter2@a.b/c"\n[state]'
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, GOOD.replace("[state]", hook))
    assert "password_env" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("kind", kinds("source"))
def test_the_template_of_every_kind_is_a_good_file(tmp_path, kind):
    config = load(tmp_path, template(kind))
    assert config.source.kind == kind


def test_the_template_of_prometheus_has_query_sets_that_are_promql(tmp_path):
    text = template("prometheus")
    config = load(tmp_path, text)
    assert list(config.source.settings.queries) == ["requests", "errors", "duration"]
    assert config.model.learn == config.source.settings.history  # the past is learned from
    both = re.sub(r"^# (\w+ = ')", r"\1", text, flags=re.MULTILINE)
    queries = load(tmp_path, both).source.settings.queries
    assert len(queries) == 9
    with prometheus(tmp_path, 1) as url:
        until(lambda: answers(f"{url}/-/ready"))
        for query in queries.values():
            assert answers(f"{url}/api/v1/format_query?{urlencode({'query': query})}"), query
        assert not answers(f"{url}/api/v1/format_query?query=rate(")


def answers(url):
    try:
        with urlopen(url, timeout=10) as answer:
            return answer.status == 200
    except HTTPError as error:
        error.close()
        return False


def test_the_template_is_a_good_file(tmp_path):
    text = template()
    config = load(tmp_path, text)
    assert config.source.kind == "mqtt"
    whole = "\n".join(line.removeprefix("# ") for line in text.splitlines() if "=" in line)
    assert "resolve_after" in whole
    assert tomllib.loads(text)["align"]["step"] == "10s"
