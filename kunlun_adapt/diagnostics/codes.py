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
    milder: bool = False
    """Whether some findings of an error's code are warnings."""

    @property
    def never_warns(self) -> bool:
        """Whether no release gives a warning of this code, so that there is nothing to accept."""
        return self.severity is not Severity.WARNING and not self.milder

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
        Code("KA011", "claim-beyond-lock", _W, "a claim that covers releases nobody verified"),
        Code("KA012", "acceptance-unused", _W, "an accepted warning that nothing gives"),
        Code("KA101", "target-missing", _E, "upstream has no such symbol in this release"),
        Code("KA102", "target-moved", _E, "the symbol lives elsewhere in this release"),
        Code("KA103", "dangling-reexport", _E, "upstream imports the name from where it is not"),
        Code(
            "KA104",
            "kind-changed",
            _E,
            "the symbol is not of the kind that the binding needs",
            milder=True,
        ),
        Code(
            "KA105",
            "signature-not-served",
            _E,
            "an upstream parameter is neither mapped nor ignored",
        ),
        Code("KA106", "drift-since-lock", _W, "the symbol differs from what the lock verified"),
        Code("KA107", "not-locked", _W, "the lock holds nothing for this binding and release"),
        Code("KA108", "named-by-reexport", _W, "the target is another name of what upstream uses"),
        Code("KA109", "inherited-only", _W, "the named class only inherits the member"),
        Code("KA110", "not-callable", _E, "what is hooked or called cannot be called"),
        Code("KA111", "hook-breaks-kind", _E, "a hook type that breaks this kind of member"),
        Code("KA112", "guard-off", _E, "defined only under a guard that does not hold here"),
        Code("KA113", "variants-differ", _W, "several definitions with different signatures"),
        Code("KA114", "parameter-inserted", _E, "upstream put a parameter before mapped ones"),
        Code("KA115", "call-not-accepted", _E, "upstream calls it in a form that ours refuses"),
        Code("KA116", "watched-changed", _W, "a watched upstream function changed or is gone"),
        Code("KA117", "import-time-value", _W, "upstream reads the value while it imports"),
        Code("KA118", "unreachable-reference", _W, "a reference that patching does not reach"),
        Code("KA119", "vacuous-target", _W, "nothing in upstream uses the target"),
        Code("KA120", "kernel-inside-kernels", _E, "only other Triton kernels call this one"),
        Code("KA121", "excluded-but-there", _W, "left out of a release that has it elsewhere"),
        Code("KA122", "hook-on-value", _E, "a call hook on a constant, list or registry"),
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
        Code("KA207", "member-signature", _E, "a method of ours that upstream calls otherwise"),
        Code("KA208", "capability-ignored", _E, "a capability that this release does not read"),
        Code(
            "KA209", "server-argument", _E, "a server argument that is unknown or of another type"
        ),
        Code("KA210", "name-collision", _W, "a name of ours that upstream has already taken"),
        Code("KA211", "custom-op-key", _W, "custom ops registered where the device does not look"),
        Code(
            "KA301",
            "implementation-not-found",
            _E,
            "an `impl:` or class path that leads nowhere",
            milder=True,
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
        Code("KA309", "no-golden", _E, "an operator without a golden"),
        Code("KA310", "tier-overlap", _I, "calls that two tiers would serve"),
        Code("KA311", "reads-values", _E, "a condition that would wait for the device"),
        Code("KA312", "weight-layout", _E, "a fallback that takes the weights in another layout"),
        Code("KA313", "planned", _I, "bindings whose implementation is still to come"),
        Code("KA314", "host-sync", _E, "a kernel that waits for the device inside a capture"),
        Code("KA401", "target-bound-twice", _E, "two bindings patch one target in one release"),
        Code("KA402", "hook-on-replaced-class", _E, "a hook on a class that a binding replaces"),
        Code("KA403", "order-unstated", _W, "hooks on one call whose order nothing states"),
        Code("KA404", "group-split", _W, "some of the methods that call each other are replaced"),
        Code("KA405", "kernel-and-hook", _E, "a kernel and a hook on one symbol"),
        Code("KA406", "conflict-active", _E, "a recorded conflict whose sides are both active"),
        Code("KA407", "process-without-plugins", _E, "a hook that never comes to its process"),
        Code("KA501", "no-stack-row", _W, "the stack has no row for the release"),
    )
}
