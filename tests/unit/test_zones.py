"""Names of time zones."""

import pickle
from zoneinfo import available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword import zones
from foreword.errors import BadInput
from foreword.zones import zone_named

HOSTS_OWN = {"localtime", "posixrules", "Factory"}
NAMES = sorted(available_timezones() - HOSTS_OWN)


def refusal(name: str) -> str:
    with pytest.raises(BadInput) as caught:
        zone_named(name)
    return str(caught.value)


@pytest.mark.promise("zones.named")
@pytest.mark.parametrize("name", NAMES)
def test_every_zone_of_the_database_is_accepted(name: str) -> None:
    zone = zone_named(name)

    assert zone.key == name
    assert zone is zone_named(name)
    assert pickle.loads(pickle.dumps(zone)).key == name


@pytest.mark.promise("zones.named")
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Europe/Berln", "Europe/Berlin"),
        ("Europe/Berlin ", "Europe/Berlin"),
        ("europe/berlin", "Europe/Berlin"),
        ("EUROPE/BERLIN", "Europe/Berlin"),
        ("berlin", "Europe/Berlin"),
        ("Berln", "Europe/Berlin"),
        ("utc", "UTC"),
        ("Kiev", "Europe/Kiev"),
        ("new york", "America/New_York"),
        ("America/New York", "America/New_York"),
        ("America/Argentina/Buenos Aires", "America/Argentina/Buenos_Aires"),
        ("São Paulo", "America/Sao_Paulo"),
        ("posix/Europe/Berlin", "Europe/Berlin"),
        ("right/Europe/Berlin", "Europe/Berlin"),
        ("Etc/gmt+5", "Etc/GMT+5"),
        ("\u202eEurope/Berlin", "Europe/Berlin"),
    ],
)
def test_a_misspelt_name_is_told_what_was_meant(name: str, meant: str) -> None:
    assert refusal(name) == f"there is no time zone {name!r}; did you mean {meant}?"


@pytest.mark.promise("zones.named")
@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("GMT")])  # gmt+0: an offset
def test_a_name_in_another_case_is_told_the_right_one(name: str) -> None:
    other = name.swapcase()

    assert refusal(other) == f"there is no time zone {other!r}; did you mean {name}?"


@pytest.mark.promise("zones.named")
@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "/",
        ".",
        "../../etc/passwd",
        "/etc/passwd",
        "~",
        "C:\\Windows",
        "zone.tab",
        "Europe",  # a directory
        "PST",  # spelt like MST
        "CEST",  # spelt like EST
        "\0",
        "\ud800",
        "null",
        "Ж" * 64,
    ],
)
def test_a_name_like_no_other_is_told_how_names_are_written(name: str) -> None:
    assert refusal(name) == f"there is no time zone {name!r}: a name is written like Europe/Berlin"


@pytest.mark.promise("zones.named")
@pytest.mark.parametrize("name", ["+02:00", "UTC+2", "gmt -5", "Z+01", "UTC\u22123", "-0330"])
def test_an_offset_is_no_zone(name: str) -> None:
    said = refusal(name)

    assert (
        said
        == f"there is no time zone {name!r}: an offset knows no summer time, name a place, such as Europe/Berlin"
    )


@pytest.mark.promise("zones.named")
@pytest.mark.parametrize("name", sorted(HOSTS_OWN))
def test_a_zone_of_the_hosts_own_is_refused(name: str) -> None:
    assert refusal(name).startswith(f"there is no time zone {name!r} that is the same everywhere: name a place")


@pytest.mark.promise("zones.named")
@pytest.mark.parametrize(
    "name", ["x" * 10_000_000, "Europe/Berlin" + " " * 1_000_000, "a/" * 500_000, "+1" * 100_000]
)
def test_an_endless_name_is_quoted_in_part_and_compared_with_none(name: str) -> None:
    said = refusal(name)

    assert len(said) < 200
    assert said.endswith("…': a name is written like Europe/Berlin")


@pytest.mark.promise("zones.named")
@given(st.text(max_size=200) | st.text("aeort/_ +-0", max_size=zones.LONGEST_NAME))
def test_whatever_is_given_is_a_zone_or_refused_in_one_line(name: str) -> None:
    if name in NAMES:
        assert zone_named(name).key == name
    else:
        assert refusal(name).isprintable()
