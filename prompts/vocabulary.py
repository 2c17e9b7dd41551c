"""The English that a text about a brief may be made of, as tables: what is read as a date, a number, a state, a
kind or a request, what each of them claims, the few plain words beside those, and what cannot be read at all. How
a text is read by them is ``prompts.reading``, whether it is true ``prompts.factcheck``.
"""

import re
from collections.abc import Mapping

# ---- dates and numbers

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS_WORDS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
TENS = {word: 10 * n for n, word in enumerate(_TENS_WORDS, 2)}
SPELLED = {word: n for n, word in enumerate(_SMALL)} | TENS
_NOTHING = ("no", "none", "nothing")

_MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" if name != "september" else "sept?(?:ember)?" for name in MONTHS)
_WEEKDAY = "|".join(WEEKDAYS) + "|mon|tues?|wed|thurs?|thu|fri|sat|sun"
_DAY, _YEAR = r"(?P<{0}>[0-3]?\d)(?:st|nd|rd|th)?", r"(?:,? (?P<{0}>\d{{4}}))?"
WHEN = re.compile(
    rf"\b(?P<iso>\d{{4}}-\d\d-\d\d)\b"
    rf"|\b(?:(?P<w1>{_WEEKDAY})\.?,? (?:the )?)?{_DAY.format('d1')} (?:of )?(?P<m1>{_MONTH})\b\.?"
    rf"{_YEAR.format('y1')}"
    rf"|\b(?:(?P<w2>{_WEEKDAY})\.?,? )?(?P<m2>{_MONTH})\.? {_DAY.format('d2')}\b{_YEAR.format('y2')}"
    rf"|\b(?P<m3>{_MONTH}) (?P<y3>\d{{4}})\b"
    rf"|\b(?P<relative>tomorrow|yesterday|tonight|today)\b"
    rf"|\b(?P<weekday>{'|'.join(WEEKDAYS)})\b",
    re.IGNORECASE,
)

NUMERAL = re.compile(
    r"(?<![\w.,])(?P<n>\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)(?P<percent> ?%| percent\b)?(?![\w%]|[.,:/-]\d)"
    rf"|\b(?P<tens>{'|'.join(TENS)})-(?P<unit>{'|'.join(_SMALL[1:10])})\b"
    rf"|\b(?P<spelled>{'|'.join(SPELLED)})\b(?P<spelled_percent> percent\b)?"
    rf"|\b(?P<nothing>{'|'.join(_NOTHING)})\b",
    re.IGNORECASE,
)
PRIORITY = re.compile(r"p([1-5])", re.IGNORECASE)
ALIKE = re.compile(r"(?<!\w)(?=\w*[^\W\d_])(?=\w*\d)\w+(?:-\w*\d\w*)*")
"""What has letters and digits: a handle, a priority, or nothing that is known."""

# ---- what is said of somebody

GIVEN_UP = frozenset({"abandoned", "cancelled", "archived"})
"""States of FINISHED in which nothing was reached."""

STATES = {
    **dict.fromkeys(("done", "completed", "achieved", "closed", "mitigated", "published"), "done"),
    **dict.fromkeys(("cancelled", "canceled"), "cancelled"),
    **dict.fromkeys(("paused", "on_hold"), "paused"),
    **{state: state for state in ("abandoned", "archived", "deferred", "draft", "planning")},
    **{state: state for state in ("in_progress", "blocked")},
    "active": "live",
}
"""What a state lets a text say, by the state: words of ``_VERBS``."""
ROLES = {"due": "due", "end": "due", "start": "start", "done_on": "done", "was": "was", "touched": "changed"}

_VERBS = {
    "overdue": r"overdue|late|past due|delayed|(?:past|missed) (?:its|their) (?:due dates?|deadlines?)",
    "done": r"done|finished|completed|closed|achieved|delivered|shipped|resolved|mitigated|accomplished"
    r"|decided|made|wins?"
    r"|(?:is|are|was|were|now|already|been) complete",
    "blocked": r"blocked|stuck|wait(?:s|ing)?(?: for| on)?|held up|depend(?:s|ing)? on",
    "in_progress": r"in progress|under ?way|ongoing|started|begun|being worked on",
    "cancelled": r"cancell?ed",
    "abandoned": r"abandoned",
    "archived": r"archived",
    "deferred": r"deferred",
    "paused": r"paused|on hold",
    "draft": r"drafts?|in draft",
    "planning": r"(?:in |being )?plann(?:ing|ed)",
    "open": r"open|unfinished|remain(?:s|ing)?|outstanding|pending|still to do",
    "stale": r"stale|untouched|idle|neglected|forgotten",
    "changed": r"changed|updated|touched|modified",
    "unblocking": r"unblock(?:s|ing)?|frees|to free|freeing|unlock(?:s|ing)?|blocks|blocking|needed by"
    r"|hold(?:s|ing) (?:things |work )?up",
    "upcoming": r"upcoming|coming up|next (?:7|seven) days",
    "today": r"(?:due|starting|starts|for|due and starting) today",
    "at_risk": r"at risk|in danger|endangered",
    "behind": r"behind(?: schedule)?",
    "on_track": r"on track|on schedule|on time",
    "missed": r"missed",
    "slipped": r"slipped|postponed|pushed back|rescheduled|moved|put off",
    "new": r"newly|new",
    "critical": r"critical",
    "high": r"high[- ]impact|high impact",
    "medium": r"medium[- ]impact",
    "low": r"low[- ]impact",
    "top": r"(?:top|high|highest) priority",
    "priority": r"priority",
    "days": r"days?",
    "live": r"live|active",
    "probability": r"probability|likelihood|chance",
    "due": r"due(?! dates?\b)|ends(?= on | today| tomorrow| \d)",
    "start": r"starts|starting|begins|beginning",
}
NOUNS = {
    "tasks": r"tasks?",
    "projects": r"projects?",
    "goals": r"goals?",
    "milestones": r"milestones?",
    "risks": r"risks?",
    "decisions": r"decisions?",
}
LABEL = re.compile(
    "|".join(rf"\b(?P<{word}>{pattern})\b" for word, pattern in (_VERBS | NOUNS).items()), re.IGNORECASE
)

# ---- around it

STOPS = re.compile(r"[,:;()–—]|\b(?:and|but|while|whereas|because|so|or|then)\b", re.IGNORECASE)  # noqa: RUF001
CARRIED = re.compile(r"\b(?:it|its|they|them|their|both|this|these|those|that|there|which|who)\b", re.IGNORECASE)

_UNREADABLE = (
    (
        "denies something",
        r"not|\w+n't|never|hardly|barely|without|neither|nor|cannot|no longer|except|other than|excluding",
    ),
    (
        "says how many in words that cannot be checked",
        (
            r"all|every|everything|everyone|each|always|entire(?:ly)?|whole|most|mostly|majority|half|thirds?|quarters?"
            r"|dozens?|hundreds?|thousands?|millions?|twice|doubled?|triple|couple|pair|several|many|few|fewer"
            r"|second|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|nearly|almost|about|around|over"
            r"|under|approximately|roughly|at least|more than|less than|up to|only"
        ),
    ),
    (
        "speaks of a period that the facts do not have",
        (
            r"(?:this|next|last|coming|past|previous|the) (?:quarter|few days)"
            r"|weeks?|months?|years?|hours?|minutes?|weekend|fortnight|o'clock|[ap]\.?m\.?"
            rf"|(?:in|by|since|until|of|early|late|mid|during|before|after) (?:{_MONTH})(?! \d)"
        ),
    ),
    ("expects what is not known yet", r"will|going to|expected|probably|likely|soon"),
)

_PLAIN: Mapping[str, str] = {
    "articles": "a an the this that these those another other others its their your both",
    "pronouns": "you it they them there here which what",
    "being": "is are was were be been being has have had having do it's there's that's they're you've",
    "prepositions": "of in on at to for from by with since among including across",
    "conjunctions": "and but while whereas or then namely",
    "adverbs": "also already still now yet first too just currently",
    "opinion": "important urgent pressing matters should",
    "things": "work item items deadline deadlines date dates",
    "greeting": "hello",
}
"""Words that may stand outside titles, by what they do. None states anything that is not checked elsewhere, and
none orders, compares, assigns, explains, or tells anybody to do a thing.
"""
_ASKED = (
    *((verb, "") for verb in ("finish", "finishing", "close", "closing")),
    *((verb, "") for verb in ("tackle", "review", "check", "watch", "see")),
    *((verb, "with") for verb in ("start", "begin", "deal")),
    *(("decide", ""), ("decide", "on"), ("look", "at"), ("looking", "at"), ("ask", "about"), ("work", "on")),
    *(("focus", "on"), ("keep an eye", "on"), ("attend", "to")),
)
"""What a text may ask its reader to do, as verb and preposition; an open item follows, or "it", or a kind."""
ASKS = re.compile(
    r"(?:(?<=^)|(?<=[.:] ))unblock\b|\b(?:"
    + "|".join(f"{verb}(?: first| now)?{preposition and ' ' + preposition}" for verb, preposition in _ASKED)
    + r")\b",
    re.IGNORECASE,
)
NEXTS = re.compile(r"\bnext steps?\b|\bnext(?= milestone\b)", re.IGNORECASE)
PHRASES = re.compile(
    r"\b(?:needs?|deserves?) (?:your |the )?(?:urgent )?attention\b|\b(?:comes?|goes) (?:first|next)\b"
    r"|\b(?:first )?things? to (?:do|look at|finish)\b|\bgood morning\b|\bin total\b"
    r"|\b(?:brings?|shows?)(?= \d)|\bstands? at(?= \d)|\b(?:called|titled|named)(?= [\ue000-\ue002])"
    r"|(?:(?<=day)|(?<=days)) (?:left|away|ahead|ago)\b",
    re.IGNORECASE,
)
"""Words that may stand together only."""

DANGLING = re.compile(
    r"\b(?:of|in|on|at|to|for|from|by|with|among|including|across|the|an?|your|its|their|and|but|while|whereas|or"
    r"|namely|should|has|have|had|having|being)[ .,;:!?)]*\Z",
    re.IGNORECASE,
)
ADRIFT = re.compile(r"\b(?:for|to|by|on|with|from|at|in) (?:you|it|them)\b", re.IGNORECASE)
SO = re.compile(rf"\bso(?= (?:{'|'.join(verb for verb, _ in _ASKED)})\b)", re.IGNORECASE)
_ALL_PLAIN = frozenset(" ".join(_PLAIN.values()).split())


def is_plain(word: str) -> bool:
    """Whether ``word`` may stand outside titles whatever stands with it."""
    return word.casefold() in _ALL_PLAIN


REFUSED = tuple((says, re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.IGNORECASE)) for says, pattern in _UNREADABLE)
PUNCTUATION = frozenset(" .,:;!?()'\"“”–—-%…&")  # noqa: RUF001  # what prose is written with

# ---- what the words claim

RELATIONS = frozenset({"blocked", "unblocking"})
OF_ITEMS = frozenset({"finish", "finishing", "close", "closing", "decide", "decide on", "unblock"})
OF_PROJECTS = frozenset(
    {"done", "live", "planning", "paused", "cancelled", "abandoned", "archived", "due", "start"}
)
ANYWHERE = {
    "at_risk": ("goals_at_risk", "milestones_at_risk"),
    "behind": ("goals_behind",),
    "on_track": ("goals_on_track",),
    "missed": ("milestones_missed",),
    "new": ("newly_overdue", "newly_done", "new_risks"),
    "live": ("open",),
    "due": ("overdue", "today", "upcoming"),
    "start": ("today", "upcoming"),
}
"""What must have been counted where a state is said of nobody in particular; of other states, themselves."""
ROLE_WORDS = tuple(
    (re.compile(rf"\b(?:{words})\b"), frozenset(roles))
    for words, roles in (
        ("due|deadlines?|target|by|ends?|(?:late|overdue|behind|missed) since", {"due"}),
        ("was due|were due|from|originally|used to be", {"due", "was"}),
        ("to|until", {"due"}),
        ("starts?|started|starting|begins?|began", {"start"}),
        ("done|finished|completed|achieved|closed|delivered|made|decided", {"done"}),
        ("changed|touched|updated|(?:untouched|idle|stale) since", {"changed"}),
        ("since", ()),  # when it was blocked or begun is not known
    )
)
_OF_TASKS = (
    *("overdue", "today", "upcoming", "blocked", "unblocking", "in_progress", "stale", "changed", "done", "open"),
    "slipped",
)
COUNTS: dict[frozenset[str], str] = {
    **{frozenset({word}): word for word in _OF_TASKS},
    **{frozenset({word, "tasks"}): word for word in _OF_TASKS},
    **{frozenset({word, "open", "tasks"}): word for word in _OF_TASKS if word not in {"done", "open", "changed"}},
    **{frozenset({"new", word}): f"newly_{word}" for word in ("overdue", "done")},
    **{frozenset({"new", word, "tasks"}): f"newly_{word}" for word in ("overdue", "done")},
    frozenset({"tasks"}): "tasks",
    frozenset({"projects"}): "projects",
    frozenset({"goals"}): "goals",
    frozenset({"goals", "live"}): "goals",
    **{frozenset({word, "goals"}): f"goals_{word}" for word in ("at_risk", "behind", "on_track")},
    **{frozenset({word, "milestones"}): f"milestones_{word}" for word in ("at_risk", "missed")},
    frozenset({"risks"}): "risks",
    frozenset({"risks", "open"}): "risks",
    frozenset({"risks", "new"}): "new_risks",
}
"""What a number counts, by the words with it."""
