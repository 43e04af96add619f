"""The texts of ``.lamfuse``: the rules in plain words, the rules as data, and the latest refusals.

They are made from the policy and the refusals of the moment in which they are opened.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from lamfuse.core import agent_text, refusals
from lamfuse.core.names import show_path
from lamfuse.core.rules import DEFAULT_DENY
from lamfuse.core.runs_later import DEFAULT_RUNS_LATER
from lamfuse.engine.gate import Gate
from lamfuse.fuse.virtual import Texts

__all__ = ["Rules", "texts_of"]


@dataclass(slots=True)
class Rules:
    """What the policy itself does not tell.

    How many deny rules a person added, and which others.
    """

    deny: int = 0
    runs_later: tuple[str, ...] = ()


def texts_of(gate: Gate, rules: Rules) -> Texts:
    """Return the texts of the view that *gate* guards; *rules* may change meanwhile."""
    return Texts(
        readme=lambda: _readme(gate),
        policy=lambda: _policy(gate, rules),
        refusals=lambda session: _refusals(gate, session),
    )


def _readme(gate: Gate) -> bytes:
    roots = gate.policy.roots
    return agent_text.readme(roots.home, roots.write, roots.read).encode()


def _policy(gate: Gate, rules: Rules) -> bytes:
    """Roots and rules as data; the person's own deny rules only as a count."""
    policy = gate.policy
    roots, home = policy.roots, policy.roots.home
    data = {
        "read_roots": [show_path(root, home) for root in (home, *roots.read)],
        "write_roots": [show_path(root, home) for root in roots.write],
        "deny": list(DEFAULT_DENY),
        "more_deny_rules": rules.deny,
        "runs_later": [*DEFAULT_RUNS_LATER, *rules.runs_later],
        "links_may_lead_into": [show_path(place, home) for place in policy.link_ok],
        "rename_over": policy.rename_over,
    }
    return msgspec.json.format(msgspec.json.encode(data), indent=2) + b"\n"


def _refusals(gate: Gate, session: str) -> bytes:
    kept = gate.sessions.get(session).refusals
    return refusals.refusals_file(tuple(kept), gate.policy.home, gate.policy.roots).encode()
