"""Every error that Foreword raises on purpose, in one tree.

::

    ForewordError                 anything below; catch this at a border
    ├── BadInput                  what was asked for cannot be meant: nothing was changed (exit code 2)
    │   ├── UnknownProject        no live project has this id
    │   ├── UnknownEntity         no live entity of the project answers to this id or handle
    │   ├── BadBudget             a token budget below the smallest that can hold the header
    │   ├── BadRows               rows to import that do not fit the tables; carries every place
    │   └── BadSettings           a setting that does not exist or cannot be so
    ├── NotAMember                the actor may not read this project
    ├── BuildError                a bundle could not be built; the old one stays (exit code 1)
    ├── SchemaError               the database lacks what the loader needs
    ├── Unavailable               PostgreSQL or Redis does not answer (exit code 3)
    └── ServerError               an embedded server cannot start or stop

A message says what happened, to what, and what to do next. Errors of the libraries below are
mapped once, where they enter, and chained.
"""


class ForewordError(Exception):
    """The root of the tree."""

    exit_code = 1


class BadInput(ForewordError):
    """What was asked for cannot be meant; nothing was changed."""

    exit_code = 2


class UnknownProject(BadInput):
    """No live project has this id."""


class UnknownEntity(BadInput):
    """No live entity of the project answers to this id or handle."""


class BadBudget(BadInput):
    """The token budget cannot hold even the header."""


class BadSettings(BadInput):
    """A setting that does not exist or has an impossible value."""


class BadRows(BadInput):
    """Rows that do not fit the tables. ``places`` lists each as (file, line, reason)."""

    def __init__(self, message: str, places: tuple[tuple[str, int, str], ...] = ()) -> None:
        super().__init__(message)
        self.places = places


class NotAMember(ForewordError):
    """The actor may not read this project."""


class BuildError(ForewordError):
    """A bundle could not be built; whatever was published before is untouched."""


class SchemaError(ForewordError):
    """The database lacks a table, a column or a right that we need."""


class Unavailable(ForewordError):
    """PostgreSQL or Redis does not answer."""

    exit_code = 3


class ServerError(ForewordError):
    """An embedded server cannot be started or stopped."""
