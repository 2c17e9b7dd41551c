"""Settings: what is unset has a default, what is wrong has a sentence, and a child is told the same."""

import base64
import re
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from foreword.errors import BadSettings
from foreword.lines import DEFAULT_BUDGET, LARGEST_BUDGET, SMALLEST_BUDGET
from worker.settings import Settings, from_environment, to_environment

SECRET = "s3cret"

NAMES = sorted(Settings.model_fields)


def refusal(**variables: str) -> str:
    with pytest.raises(BadSettings) as refused:
        from_environment({f"FOREWORD_{name}": value for name, value in variables.items()})
    return str(refused.value)


@pytest.mark.promise("cli.settings")
def test_with_nothing_set_everything_has_a_default() -> None:
    settings = from_environment({"PATH": "/bin", "FOREWORDS_ZONE": "not ours"})

    assert (settings.database_url, settings.redis_url, settings.broker_url, settings.as_of) == (None,) * 4
    assert (settings.zone, settings.budget) == ("UTC", DEFAULT_BUDGET)
    assert settings.concurrency >= 1
    assert settings.data_dir.is_absolute()


@pytest.mark.promise("cli.settings")
def test_a_variable_that_is_empty_is_unset() -> None:
    settings = from_environment({"FOREWORD_ZONE": "", "FOREWORD_AS_OF": ""})

    assert settings == from_environment({})


@pytest.mark.promise("cli.settings")
def test_every_setting_can_be_set() -> None:
    settings = from_environment(
        {
            "FOREWORD_DATABASE_URL": f"postgresql://me:{SECRET}@one:5432,two:5433/x?sslmode=require",
            "FOREWORD_REDIS_URL": f"rediss://:{SECRET}@cache:6380/2",
            "FOREWORD_BROKER_URL": "unix:///run/redis.sock?db=1",
            "FOREWORD_DATA_DIR": "/var/lib/foreword",
            "FOREWORD_ZONE": "America/New_York",
            "FOREWORD_BUDGET": str(SMALLEST_BUDGET),
            "FOREWORD_BUNDLE_DAYS": "7",
            "FOREWORD_CONCURRENCY": "3",
            "FOREWORD_AS_OF": "2026-11-21",
        }
    )

    assert settings.database_url is not None
    assert settings.database_url.get_secret_value().startswith(f"postgresql://me:{SECRET}@")
    assert settings.data_dir == Path("/var/lib/foreword")
    assert (settings.zone, settings.budget, settings.bundle_days) == ("America/New_York", SMALLEST_BUDGET, 7)
    assert (settings.concurrency, settings.as_of) == (3, date(2026, 11, 21))


@pytest.mark.promise("cli.settings")
@pytest.mark.parametrize("name", NAMES)
def test_a_misspelt_name_is_told_what_was_meant(name: str) -> None:
    misspelt = name.upper()[:-2] + name.upper()[-1]

    assert f"unknown setting FOREWORD_{misspelt}, did you mean FOREWORD_{name.upper()}?" in refusal(
        **{misspelt: "x"}
    )


@pytest.mark.promise("cli.settings")
def test_a_name_like_no_other_is_told_all_there_are() -> None:
    said = refusal(QUARTZ="green")

    assert said == f"unknown setting FOREWORD_QUARTZ, there are {', '.join(NAMES)}"


@pytest.mark.promise("cli.settings")
def test_every_mistake_is_listed_at_once() -> None:
    said = refusal(COLOUR="green", ZONE="Mars/Olympus", BUDGET="ten", CONCURRENCY="0").split("; ")

    assert [each.partition(":")[0].partition(",")[0] for each in said] == [
        "unknown setting FOREWORD_COLOUR",
        "FOREWORD_ZONE",
        "FOREWORD_BUDGET",
        "FOREWORD_CONCURRENCY",
    ]


@pytest.mark.promise("cli.settings")
@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("ZONE", "Europe/Berlinn", "there is no time zone 'Europe/Berlinn'; did you mean Europe/Berlin?"),
        ("ZONE", "../../etc/passwd", "there is no time zone '../../etc/passwd'"),
        ("ZONE", "Europe", "there is no time zone 'Europe'"),
        ("BUDGET", str(SMALLEST_BUDGET - 1), f"Input should be greater than or equal to {SMALLEST_BUDGET}"),
        ("BUDGET", str(LARGEST_BUDGET + 1), f"Input should be less than or equal to {LARGEST_BUDGET}"),
        ("BUDGET", "1e3", "Input should be a valid integer"),
        ("BUNDLE_DAYS", "0", "Input should be greater than or equal to 1"),
        ("CONCURRENCY", "257", "Input should be less than or equal to 256"),
        ("AS_OF", "2026-02-30", "Input should be a valid date"),
        ("DATA_DIR", "~nobody-of-this-name/data", "~nobody-of-this-name/data: "),
        ("DATABASE_URL", "dbname=x", "a URL beginning postgresql:// or postgres:// is wanted"),
        ("REDIS_URL", "http://localhost", "a URL beginning redis:// or rediss:// or unix:// is wanted"),
        ("REDIS_URL", "unix:/tmp/redis.sock", "a URL beginning redis:// or rediss:// or unix:// is wanted"),
        ("REDIS_URL", "rediss://h?ssl_cert_reqs=none", "ssl_cert_reqs would let anybody pass for the server"),
        ("BROKER_URL", "rediss://h?ssl_check_hostname=0", "ssl_check_hostname would let anybody pass for"),
        ("BROKER_URL", "rediss://h?ssl_ca_certs=/no/ca", "ssl_ca_certs=/no/ca cannot be read: No such file"),
    ],
)
def test_an_impossible_value_is_told_why(name: str, value: str, says: str) -> None:
    said = refusal(**{name: value})

    assert said.startswith(f"FOREWORD_{name}: {says}")


@pytest.mark.promise("cli.settings", "cli.down")
@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("DATABASE_URL", f"postgresql://me:{SECRET}%zz@host/x"),
        ("DATABASE_URL", f"postgresql://me:x@host/x?{SECRET}=1"),
        ("DATABASE_URL", f"postgresql://me:x@host:{SECRET}/x"),
        ("DATABASE_URL", f"postgresql://me:{SECRET}@[::1/x"),
        ("REDIS_URL", f"redis://:{SECRET}/more@host"),
        ("REDIS_URL", f"redis://host:{SECRET}"),
        ("REDIS_URL", f"redis://host?{SECRET}=1"),
        ("REDIS_URL", f"redis://host?db={SECRET}"),
        ("REDIS_URL", f"redis://:{SECRET}@[::1/0"),
        ("REDIS_URL", "unix://"),
        ("BROKER_URL", f"unix://?db={SECRET}"),
        ("DATABASE_URL", f"mysql://me:{SECRET}@host/x"),
    ],
)
def test_a_url_that_cannot_be_read_is_not_repeated(name: str, url: str) -> None:
    said = refusal(**{name: url})

    assert said.startswith(f"FOREWORD_{name}: ")
    assert SECRET not in said


@pytest.mark.promise("cli.down")
def test_secrets_are_not_shown() -> None:
    settings = from_environment({"FOREWORD_DATABASE_URL": f"postgresql://me:{SECRET}@host/x"})

    assert SECRET not in f"{settings} {settings!r} {settings.model_dump()} {settings.model_dump_json()}"


@pytest.mark.promise("cli.settings")
def test_a_home_is_expanded_and_a_place_is_the_same_from_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")

    at_home = from_environment({"FOREWORD_DATA_DIR": "~/data"}).data_dir
    here = from_environment({"FOREWORD_DATA_DIR": "data"}).data_dir

    assert at_home == Path("/home/somebody/data")
    assert here == Path.cwd() / "data"


@pytest.mark.promise("cli.settings")
def test_settings_do_not_change() -> None:
    settings = from_environment({})

    with pytest.raises(ValidationError, match="frozen"):
        settings.budget = 300  # type: ignore[misc]  # that is what is tried


# ---- models and webhooks

SIGNING = f"whsec_{base64.b64encode(b'thirty-two bytes of a secret key').decode()}"


@pytest.mark.promise("cli.settings", "model.secret")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MODEL_URL", f"https://me:{SECRET}@models.example/v1"),
        ("MODEL_URL", f"https://models.example/v1?key={SECRET}"),
        ("MODEL_URL", f"https://models.example/v1#{SECRET}"),
        ("MODEL_URL", f"https://models.example:{SECRET}/v1"),
        ("MODEL_URL", f"ftp://{SECRET}/v1"),
        ("MODEL_URL", f"https:///{SECRET}"),
        ("MODEL_KEY", f"{SECRET} and more"),
        ("MODEL_KEY", f"{SECRET}\n"),
        ("MODEL_KEY", f"{SECRET}ü"),
        ("WEBHOOK_URL", f"hooks.example/{SECRET}"),
        ("WEBHOOK_URL", f"ftp://hooks.example/{SECRET}"),
        ("WEBHOOK_URL", f"https:///{SECRET}"),
        ("WEBHOOK_URL", f"https://hooks.example:{SECRET}/"),
        ("WEBHOOK_URL", f"https://[::1/{SECRET}"),
        ("WEBHOOK_URL", f"https://hooks.example/\n{SECRET}"),
        ("WEBHOOK_URL", f"https://hooks.example/a b{SECRET}"),
        ("WEBHOOK_SECRET", SECRET),
        ("WEBHOOK_SECRET", f"whsec_{SECRET}"),
        ("WEBHOOK_SECRET", f"whsec_{SECRET}{'A' * 27}!"),
        ("WEBHOOK_SECRET", f"whsec_{base64.b64encode(b'too short').decode()}{SECRET}"),
    ],
)
def test_what_may_hold_a_secret_is_refused_by_its_name_and_not_quoted(name: str, value: str) -> None:
    said = refusal(**{name: value})

    assert said.startswith(f"FOREWORD_{name}: ")
    assert SECRET not in said
    assert "\n" not in said


@pytest.mark.promise("cli.settings")
@pytest.mark.parametrize(
    ("name", "value"), [("WEBHOOK_URL", f"https://hooks.example/?token={SECRET}"), ("WEBHOOK_SECRET", SIGNING)]
)
def test_an_address_without_a_secret_is_refused_and_so_is_a_secret_without_an_address(
    name: str, value: str
) -> None:
    said = refusal(**{name: value})

    assert said == "FOREWORD_WEBHOOK_URL and FOREWORD_WEBHOOK_SECRET go together: set both, or neither"


@pytest.mark.promise("cli.settings")
@pytest.mark.parametrize("secret", [SIGNING, SIGNING.removeprefix("whsec_")])
def test_a_webhook_may_have_a_token_and_shows_neither(secret: str) -> None:
    url = f"https://hooks.example:8443/in?token={SECRET}"

    settings = from_environment({"FOREWORD_WEBHOOK_URL": url, "FOREWORD_WEBHOOK_SECRET": secret})

    assert settings.webhook_url is not None
    assert settings.webhook_url.get_secret_value() == url
    for shown in (repr(settings), str(settings.model_dump()), settings.model_dump_json()):
        assert SECRET not in shown
        assert secret not in shown


@pytest.mark.promise("cli.settings")
@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("MODEL_SECONDS", "0", "greater than 0"),
        ("MODEL_SECONDS", "51", "less than or equal to 50"),
        ("MODEL_SECONDS", "nan", "finite"),
        ("MODEL_SECONDS", "soon", "valid number"),
        ("MODEL_PRICE_IN", "-1", "greater than or equal to 0"),
        ("MODEL_PRICE_OUT", "inf", "finite"),
        ("MODEL_PRICE_OUT", "a dollar", "valid decimal"),
    ],
)
def test_a_model_that_cannot_be_so_is_told_why(name: str, value: str, says: str) -> None:
    said = refusal(**{name: value})

    assert said.startswith(f"FOREWORD_{name}: Input should be ")
    assert says in said


SETTINGS = st.builds(
    Settings,
    database_url=st.sampled_from(
        [None, SecretStr("postgresql:///x?host=/tmp"), SecretStr("postgres://a:b%2Fc@d/e")]
    ),
    redis_url=st.sampled_from([None, SecretStr("redis://:p%40ss@host:1/2")]),
    broker_url=st.sampled_from([None, SecretStr("unix:///tmp/a.sock?db=1")]),
    data_dir=st.sampled_from([Path("/tmp/a b"), Path("/var/lib/ü")]),
    zone=st.sampled_from(["UTC", "Asia/Kathmandu", "Australia/Lord_Howe"]),
    budget=st.integers(SMALLEST_BUDGET, LARGEST_BUDGET),
    bundle_days=st.integers(1, 10_000),
    concurrency=st.integers(1, 256),
    as_of=st.none() | st.dates(),
    model_url=st.sampled_from([None, "https://models.example/v1"]),
    model_key=st.sampled_from([None, SecretStr("sk-key")]),
    model_price_in=st.none() | st.decimals(0, 100, places=4),
    webhook_url=st.just(SecretStr("https://hooks.example/in?token=a%20b")),
    webhook_secret=st.just(SecretStr(SIGNING)),
)


@pytest.mark.promise("cli.settings")
@given(SETTINGS)
def test_a_child_process_is_told_the_same_settings(settings: Settings) -> None:
    assert from_environment(to_environment(settings)) == settings


# ---- values in files


@pytest.mark.promise("deploy.secrets")
def test_a_value_may_stand_in_a_file_whose_last_line_break_is_no_part_of_it(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text("redis://worker:pass@cache:6379/0\n")

    found = from_environment({"FOREWORD_REDIS_URL_FILE": str(file)})

    assert found.redis_url is not None
    assert found.redis_url.get_secret_value() == "redis://worker:pass@cache:6379/0"
    assert from_environment(to_environment(found)) == found


@pytest.mark.promise("deploy.secrets")
@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"REDIS_URL_FILE": "{file}", "REDIS_URL": "redis://x"}, "are both set"),
        ({"REDIS_URL_FILE": "/does/not/exist"}, "REDIS_URL_FILE: /does/not/exist cannot be read: No such file"),
        ({"REDIS_URL_FILE": "/dev/zero"}, "empty, or longer than"),
        ({"REDIS_URL_FILE": "/dev/null"}, "empty, or longer than"),
        ({"REDIS_URL_FILE": "{binary}"}, "it is no UTF-8"),
        ({"REDIS_URI_FILE": "{file}"}, "unknown setting FOREWORD_REDIS_URI_FILE"),
        ({"REDIS_URL_FILE": "{nonsense}"}, "FOREWORD_REDIS_URL: a URL beginning redis://"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_and_not_what_is_in_it(
    tmp_path: Path, variables: dict[str, str], says: str
) -> None:
    files = {"file": b"redis://worker:tops3cret@cache", "binary": b"\xff\xfe", "nonsense": b"tops3cret"}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    places = {name: tmp_path / name for name in files}

    with pytest.raises(BadSettings, match=re.escape(says)) as raised:
        from_environment({f"FOREWORD_{name}": value.format(**places) for name, value in variables.items()})

    assert "tops3cret" not in str(raised.value)
