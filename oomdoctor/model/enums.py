"""Closed sets of words: kinds of facts, truth values, origins, severities, safety of fixes."""

from __future__ import annotations

from enum import Enum


class Kind(str, Enum):
    """What a fact's value is; decides which comparisons and arithmetic the rule language allows."""

    BYTES = "bytes"
    COUNT = "count"
    RATIO = "ratio"
    SECONDS = "seconds"
    BOOL = "bool"
    ENUM = "enum"
    TEXT = "text"
    VERSION = "version"


class Truth(str, Enum):
    """Kleene's three truth values."""

    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "unknown"


class Origin(str, Enum):
    """Where a fact's value comes from, strongest first."""

    STATED = "stated"
    PROBED = "probed"
    DERIVED = "derived"
    ASSUMED = "assumed"


class Severity(str, Enum):
    """How bad a finding is."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Safety(str, Enum):
    """What a fix may change besides memory, safest first."""

    SAFE = "safe"
    CHANGES_SPEED = "changes-speed"
    CHANGES_MATH = "changes-math"
    NEEDS_CODE = "needs-code"


class Maturity(str, Enum):
    """How much evidence stands behind a rule; sandbox rules speak only with --preview."""

    SANDBOX = "sandbox"
    INCUBATING = "incubating"
    STABLE = "stable"
    DEPRECATED = "deprecated"
