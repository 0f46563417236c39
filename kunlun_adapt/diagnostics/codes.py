"""The table of finding codes: one code, one rule, one page under `docs/codes/`."""

from __future__ import annotations

from dataclasses import dataclass

from kunlun_adapt.diagnostics.severity import Severity


@dataclass(frozen=True, slots=True)
class Code:
    """A kind of finding: its stable code, short name, default severity and one-line meaning."""

    code: str
    name: str
    severity: Severity
    meaning: str

    @property
    def page(self) -> str:
        return f"docs/codes/{self.code}.md"


_E, _W, _I = Severity.ERROR, Severity.WARNING, Severity.INFO

CODES: dict[str, Code] = {
    c.code: c
    for c in (
        Code("KA001", "yaml-syntax", _E, "a file is not readable as YAML 1.2 within the limits"),
        Code("KA002", "schema", _E, "a value is missing or not of the kind that its key takes"),
        Code("KA003", "unknown-key", _E, "a key that no document of this kind has"),
        Code("KA004", "duplicate-id", _E, "two things in the workspace carry one name"),
        Code("KA005", "unresolved-reference", _E, "a name that points to nothing in the workspace"),
        Code("KA006", "invalid-range", _E, "a version range that is not PEP 440 or that is empty"),
        Code("KA007", "range-overlap", _E, "two ranges of one binding hold for one release"),
        Code(
            "KA008", "range-gap", _E, "a release inside the map's claim that a binding leaves out"
        ),
        Code("KA009", "release-not-claimed", _E, "the release lies outside the map's claim"),
        Code("KA010", "missing-why", _W, "a statement without the reason for it"),
        Code("KA101", "target-missing", _E, "upstream has no such symbol in this release"),
        Code("KA102", "target-moved", _E, "the symbol lives elsewhere in this release"),
        Code("KA103", "dangling-reexport", _E, "upstream imports the name from where it is not"),
        Code("KA104", "kind-changed", _E, "the symbol is not of the kind that the binding needs"),
        Code(
            "KA105",
            "signature-not-served",
            _E,
            "an upstream parameter is neither mapped nor ignored",
        ),
        Code("KA106", "drift-since-lock", _W, "the symbol differs from what the lock verified"),
        Code("KA107", "not-locked", _W, "the lock holds nothing for this binding and release"),
        Code("KA201", "orphaned-platform-method", _E, "the release's platform has no such member"),
        Code("KA202", "unspelled-platform-key", _E, "a key without a spelling for this release"),
        Code(
            "KA203", "capability-at-default", _W, "a capability that the map leaves at its default"
        ),
        Code(
            "KA204",
            "platform-method-unserved",
            _E,
            "a member that raises unless a platform gives it",
        ),
        Code(
            "KA205",
            "no-platform-interface",
            _E,
            "the release has no out-of-tree platform interface",
        ),
        Code("KA206", "left-and-given", _E, "a member that the map gives and leaves to upstream"),
        Code(
            "KA301", "implementation-not-found", _E, "an `impl:` or class path that leads nowhere"
        ),
        Code(
            "KA302", "implementation-signature", _E, "an implementation that cannot take the call"
        ),
        Code("KA303", "tier-gap", _E, "a declared call that no tier serves"),
        Code("KA304", "condition", _E, "a condition that reads or says what conditions cannot"),
        Code("KA305", "tier-unreachable", _E, "a tier that no call can reach"),
        Code("KA306", "no-golden-tier", _W, "an operator whose last resort is not the golden"),
        Code("KA307", "unknown-vendor-op", _W, "a vendor op that no contract describes"),
        Code("KA308", "tiers-sampled", _I, "tiers with too many kinds of call to try them all"),
        Code("KA401", "target-bound-twice", _E, "two bindings patch one target in one release"),
    )
}
