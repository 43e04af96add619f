"""Files that run on the person's machine later, outside the boundary.

The class is told by path alone, so it has limits. A git directory is known by a component that ends
in ``.git``: the ``config`` of a bare repository under another name, or of one that
``--separate-git-dir`` put elsewhere, is not found here (its ``hooks/*`` are). Source code, a
Makefile or a package.json run later as well and are not in the class.
"""

from __future__ import annotations

from collections.abc import Sequence

from lamfuse.core import paths
from lamfuse.core.patterns import Pattern, PatternSet, find, parse, spell, spellings

__all__ = ["DEFAULT_RUNS_LATER", "RunsLater"]

_START_UP = (
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".mkshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".logout",
    ".xprofile",
    ".xinitrc",
    ".xserverrc",
    ".xsession",
    ".xsessionrc",
    ".pam_environment",
    ".inputrc",
    "**/.config/autostart",
    "**/.config/systemd",
    "**/.config/environment.d",
    "**/.config/fish",
    "**/.config/nvim",
    "**/.config/Code",
    "**/.local/share/applications",
    "**/.local/share/dbus-1",
    "**/.local/share/systemd",
    "*.desktop",
    "**/.local/bin",
    "/bin",
    "**/.cargo/bin",
    "**/.cargo/config.toml",
    "**/.cargo/config",
)

#: Git runs hooks, and what the configuration names; an attributes file chooses among the latter.
_GIT = (".gitconfig", "**/.config/git", ".gitattributes", ".gitmodules", "**/*.git/info/attributes")

_TOOLS = (
    ".husky",
    ".pre-commit-config.yaml",
    ".envrc",
    "**/.vscode/*",
    "*.code-workspace",
    ".idea",
    ".devcontainer",
    ".npmrc",
    ".yarnrc*",
    ".pypirc",
    "pip.conf",
    "*.pth",
    "sitecustomize.py",
    "usercustomize.py",
    "conftest.py",
    ".vimrc",
    ".exrc",
    ".emacs*",
    ".tmux.conf",
    ".gdbinit",
)

_AGENTS = (
    ".claude",
    ".claude.json",
    ".codex",
    ".cursor",
    ".cursorrules",
    ".gemini",
    ".mcp.json",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "AGENTS.md",
    "GEMINI.md",
)

#: What is matched, with everything below it. The hooks stand first: git never runs a sample, but a
#: sample that a later line names is in the class all the same.
_TREES = ("**/hooks/*", "!**/hooks/*.sample", *_START_UP, *_GIT, *_TOOLS, *_AGENTS)

#: What is matched unless it is a directory: a folder ``config-old`` in a git directory runs
#: nothing, and a plain ``.git`` is a directory; but a file or a link in place of a directory leads
#: elsewhere.
_FILES = (
    ".git",
    "hooks",
    ".vscode",
    "**/*.git/config*",
    "**/*.git/commondir",
    "**/*.git/worktrees/*/config*",
    "**/*.git/worktrees/*/commondir",
    "**/*.git/modules/**/config*",
    "**/*.git/modules/**/commondir",
)

#: Gitignore lines from home; a line without a slash, or that starts with ``**/``, holds everywhere.
DEFAULT_RUNS_LATER: tuple[str, ...] = (*_TREES, *_FILES)

#: Names whose candidates are remembered; the caller chooses the names, so there must be a bound.
_REMEMBERED = 1 << 14


class RunsLater:
    """The class of files that run later: the default list, and *extra* gitignore lines.

    A ``!`` line of the person takes back only what their own lines name. Raises RuleError.
    """

    def __init__(self, home: bytes, extra: Sequence[str] = ()) -> None:
        self._home = home
        self._trees = tuple(PatternSet(parse(lines, home)) for lines in (_TREES, extra))
        self._files = parse(_FILES, home)
        self._candidates: dict[bytes, tuple[tuple[Pattern, ...], ...]] = {}

    def rule_for(self, path: bytes, *, is_dir: bool | None = None) -> str | None:
        """Return the line that says that *path* runs later, or None.

        *is_dir* None, for what is not known or does not exist, is read as a file. Total on any
        bytes.
        """
        path = paths.normalise(path)
        at_home = paths.contains(self._home, path)
        names = paths.components(paths.relative(self._home, path) if at_home else path)
        spelled = spellings(names)
        for end, name in enumerate(names, start=1):
            kind = is_dir if end == len(names) else True
            prefix = [(is_folded, texts[:end]) for is_folded, texts in spelled]
            for candidates in self._candidates_for(name):
                found = find(candidates, prefix, is_dir=kind, anchored=at_home)
                if found is not None:
                    return found.text
        found = None if is_dir else find(self._files, spelled, is_dir=False, anchored=at_home)
        return found.text if found is not None else None

    def _candidates_for(self, name: bytes) -> tuple[tuple[Pattern, ...], ...]:
        found = self._candidates.get(name)
        if found is None:
            spelled = spell(name)
            found = tuple(tree.candidates(spelled) for tree in self._trees)
            if len(self._candidates) >= _REMEMBERED:
                self._candidates.clear()
            self._candidates[name] = found
        return found
