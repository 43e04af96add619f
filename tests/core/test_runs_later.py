"""Which files run on the person's machine later, by every entry of the contract."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamfuse.core import paths
from lamfuse.core.rules import RuleError
from lamfuse.core.runs_later import DEFAULT_RUNS_LATER, RunsLater
from tests import strategies

pytestmark = pytest.mark.requirement("H9", "H10")

HOME = strategies.HOME
CLASS = RunsLater(HOME)

_CONFIG = "**/*.git/config*"
_MODULES = "**/*.git/modules/**/config*"
_WORKTREES = "**/*.git/worktrees/*/config*"

_MATCHES = [
    # shells and sessions
    (".bashrc", ".bashrc"),
    (".bash_profile", ".bash_profile"),
    (".bash_login", ".bash_login"),
    (".bash_logout", ".bash_logout"),
    (".bash_aliases", ".bash_aliases"),
    (".profile", ".profile"),
    (".zshrc", ".zshrc"),
    (".zshenv", ".zshenv"),
    (".zprofile", ".zprofile"),
    (".zlogin", ".zlogin"),
    (".zlogout", ".zlogout"),
    (".kshrc", ".kshrc"),
    (".mkshrc", ".mkshrc"),
    (".cshrc", ".cshrc"),
    (".tcshrc", ".tcshrc"),
    (".login", ".login"),
    (".logout", ".logout"),
    (".xprofile", ".xprofile"),
    (".xinitrc", ".xinitrc"),
    (".xserverrc", ".xserverrc"),
    (".xsession", ".xsession"),
    (".xsessionrc", ".xsessionrc"),
    (".pam_environment", ".pam_environment"),
    (".inputrc", ".inputrc"),
    ("dotfiles/.bashrc", ".bashrc"),
    (".BASHRC", ".bashrc"),
    (".bash\u200drc", ".bashrc"),
    ("a\nb/.profile", ".profile"),
    # .config and .local
    (".config/autostart", "**/.config/autostart"),
    (".config/autostart/x.txt", "**/.config/autostart"),
    (".config/systemd/user/x.service", "**/.config/systemd"),
    (".config/environment.d/x.conf", "**/.config/environment.d"),
    (".config/fish/config.fish", "**/.config/fish"),
    (".config/nvim/init.lua", "**/.config/nvim"),
    (".config/Code/User/settings.json", "**/.config/Code"),
    (".config/code/User/settings.json", "**/.config/Code"),
    ("dotfiles/.config/nvim/init.lua", "**/.config/nvim"),
    (".local/share/applications/x", "**/.local/share/applications"),
    (".local/share/dbus-1/services/x", "**/.local/share/dbus-1"),
    (".local/share/systemd/user/x", "**/.local/share/systemd"),
    ("a/x.desktop", "*.desktop"),
    (".local/bin/x", "**/.local/bin"),
    ("bin", "/bin"),
    ("bin/x", "/bin"),
    (".cargo/bin/x", "**/.cargo/bin"),
    (".cargo/config.toml", "**/.cargo/config.toml"),
    ("work/p/.cargo/config.toml", "**/.cargo/config.toml"),
    (".cargo/config", "**/.cargo/config"),
    # git
    ("p/.git/hooks/pre-commit", "**/hooks/*"),
    ("p/repo.git/hooks/post-receive", "**/hooks/*"),
    ("p/.git/modules/m/hooks/pre-commit", "**/hooks/*"),
    ("p/bare/hooks/update", "**/hooks/*"),
    ("p/.git/hooks/pre-commit.sample.sh", "**/hooks/*"),
    ("p/.git/hooks/pre-commit.SAMPLE", "**/hooks/*"),
    ("p/.git/hooks/lib/x", "**/hooks/*"),
    ("p/.git/hooks/lib/x.sample", "**/hooks/*"),
    ("p/.git/HOOKS/pre-commit", "**/hooks/*"),
    ("hooks/x", "**/hooks/*"),
    ("p/.git/hooks", "hooks"),
    ("p/.git/config", _CONFIG),
    ("p/.git/config.worktree", _CONFIG),
    ("p/.git/config.lock", _CONFIG),
    (".git/config", _CONFIG),
    ("p/.GIT/Config", _CONFIG),
    ("p/repo.git/config", _CONFIG),
    ("p/.git/worktrees/x/config.worktree", _WORKTREES),
    ("p/repo.git/worktrees/x/config.worktree", _WORKTREES),
    ("p/.git/modules/m/config", _MODULES),
    ("p/.git/modules/a/b/config", _MODULES),
    ("p/.git/modules/a/modules/b/config.worktree", _MODULES),
    ("p/.git/commondir", "**/*.git/commondir"),
    ("p/.git/worktrees/x/commondir", "**/*.git/worktrees/*/commondir"),
    ("p/.git/modules/m/commondir", "**/*.git/modules/**/commondir"),
    ("p/.git/info/attributes", "**/*.git/info/attributes"),
    ("p/.git", ".git"),
    (".gitconfig", ".gitconfig"),
    (".config/git", "**/.config/git"),
    (".config/git/config", "**/.config/git"),
    ("p/.gitattributes", ".gitattributes"),
    ("p/.gitmodules", ".gitmodules"),
    # tools
    ("p/.husky", ".husky"),
    ("p/.husky/pre-commit", ".husky"),
    ("p/.pre-commit-config.yaml", ".pre-commit-config.yaml"),
    ("p/.envrc", ".envrc"),
    ("p/.vscode/tasks.json", "**/.vscode/*"),
    ("p/.vscode/a/b", "**/.vscode/*"),
    ("p/.vscode", ".vscode"),
    ("p/x.code-workspace", "*.code-workspace"),
    ("p/.idea", ".idea"),
    ("p/.idea/workspace.xml", ".idea"),
    ("p/.devcontainer/devcontainer.json", ".devcontainer"),
    (".npmrc", ".npmrc"),
    ("p/.yarnrc", ".yarnrc*"),
    ("p/.yarnrc.yml", ".yarnrc*"),
    (".pypirc", ".pypirc"),
    (".config/pip/pip.conf", "pip.conf"),
    ("p/lib/x.pth", "*.pth"),
    ("p/sitecustomize.py", "sitecustomize.py"),
    ("p/usercustomize.py", "usercustomize.py"),
    ("p/tests/conftest.py", "conftest.py"),
    (".vimrc", ".vimrc"),
    ("p/.exrc", ".exrc"),
    (".emacs", ".emacs*"),
    (".emacs.d/init.el", ".emacs*"),
    (".tmux.conf", ".tmux.conf"),
    ("p/.gdbinit", ".gdbinit"),
    # agents
    ("p/.claude", ".claude"),
    ("p/.claude/settings.json", ".claude"),
    (".claude.json", ".claude.json"),
    (".codex/config.toml", ".codex"),
    ("p/.cursor/mcp.json", ".cursor"),
    ("p/.cursorrules", ".cursorrules"),
    (".gemini/settings.json", ".gemini"),
    ("p/.mcp.json", ".mcp.json"),
    ("p/CLAUDE.md", "CLAUDE.md"),
    ("p/claude.md", "CLAUDE.md"),
    ("p/CLAUDE.local.md", "CLAUDE.local.md"),
    ("p/AGENTS.md", "AGENTS.md"),
    ("p/GEMINI.md", "GEMINI.md"),
]

_MISSES = [
    "",
    "notes.md",
    "bashrc",
    ".bashrc2",
    "x.bashrc",
    "profile",
    ".config",
    ".config/autostart2/x",
    "autostart/x",
    ".config/fishy",
    "systemd/x",
    "a.config/nvim/x",
    ".local",
    ".local/share",
    ".local/share/lamfuse/agent/x",
    ".local/binx",
    "x.desktop.txt",
    "desktop",
    "p/bin/x",
    "bin2",
    ".cargo",
    ".cargo/registry/x",
    "config.toml",
    "p/config",
    "p/config/x",
    "config",
    "p/git/config",
    "p/.github/config",
    "p/.gitx/config",
    "p/.git/x/config",
    "p/.git/refs/heads/config",
    "p/.git/xconfig",
    "p/.git/worktrees/config",
    "p/.git/worktrees/x/y/config",
    "p/worktrees/x/config.worktree",
    "p/modules/m/config",
    "p/.git/modules/m/HEAD",
    "p/.git/HEAD",
    "p/.git/index",
    "p/.git/objects/ab/cd",
    "p/.git/COMMIT_EDITMSG",
    "p/.git/description",
    "p/.git/info/exclude",
    "p/info/attributes",
    "commondir",
    "p/.git/hooks/pre-commit.sample",
    "p/.git/modules/m/hooks/pre-commit.sample",
    "p/webhooks/x",
    "p/hooks2/x",
    "p/hooks.py",
    "p/repo.git",
    "p/.gitignore",
    "p/.github/workflows/x.yml",
    ".gitconfig2",
    "p/husky",
    "p/.envrc.example",
    "p/.env.d",
    "p/vscode/tasks.json",
    "p/code-workspace",
    "p/idea/x",
    "p/npmrc",
    "p/yarnrc",
    "p/pip.conf.bak",
    "p/pth",
    "p/mysitecustomize.py",
    "p/xconftest.py",
    "p/conftest.pyc",
    "p/emacs",
    "p/tmux.conf",
    "p/claude",
    "p/.claudex",
    "p/CLAUDE.md.txt",
    "p/MYAGENTS.md",
    "p/Makefile",
    "p/package.json",
    "p/src/main.py",
]


@pytest.mark.parametrize(
    ("path", "rule"), [pytest.param(path, rule, id=ascii(path)) for path, rule in _MATCHES]
)
def test_in_the_class(path: str, rule: str) -> None:
    assert CLASS.rule_for(HOME + b"/" + path.encode()) == rule
    assert CLASS.rule_for(HOME + b"/" + path.encode(), is_dir=False) == rule


@pytest.mark.parametrize("path", [pytest.param(path, id=ascii(path)) for path in _MISSES])
def test_not_in_the_class(path: str) -> None:
    assert CLASS.rule_for(HOME + b"/" + path.encode()) is None
    assert CLASS.rule_for(HOME + b"/" + path.encode(), is_dir=False) is None
    assert CLASS.rule_for(HOME + b"/" + path.encode(), is_dir=True) is None


def test_every_line_of_the_list_has_a_match_in_the_table() -> None:
    matched = {rule for _, rule in _MATCHES}

    assert {line for line in DEFAULT_RUNS_LATER if not line.startswith("!")} == matched


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        pytest.param("p/.git", None, id="git-directory"),
        pytest.param("p/.git/config", None, id="config-directory"),
        pytest.param("p/.git/modules/config", None, id="module-called-config"),
        pytest.param("p/hooks", None, id="hooks-directory"),
        pytest.param("p/.vscode", None, id="vscode-directory"),
        pytest.param("p/.husky", ".husky", id="husky-directory"),
        pytest.param("p/hooks/x", "**/hooks/*", id="directory-of-hooks"),
        pytest.param("bin", "/bin", id="bin-in-home"),
    ],
)
def test_a_directory(path: str, rule: str | None) -> None:
    assert CLASS.rule_for(HOME + b"/" + path.encode(), is_dir=True) == rule


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        pytest.param(b"/srv/p/.git/config", _CONFIG, id="git-config"),
        pytest.param(b"/srv/p/.git/hooks/x", "**/hooks/*", id="hook"),
        pytest.param(b"/srv/.bashrc", ".bashrc", id="name"),
        pytest.param(b"/srv/.config/nvim/x", "**/.config/nvim", id="place-at-any-depth"),
        pytest.param(b"/.git", ".git", id="git-file-at-the-root"),
        pytest.param(b"/bin/x", None, id="bin-in-home-only"),
        pytest.param(b"/home/u2/bin", None, id="bin-of-a-longer-home"),
        pytest.param(b"/home/u/x/../bin", "/bin", id="not-normalised"),
    ],
)
def test_outside_home_only_what_names_no_place_counts(path: bytes, rule: str | None) -> None:
    assert CLASS.rule_for(path) == rule


def test_the_person_adds_lines_and_takes_back_only_their_own() -> None:
    extended = RunsLater(HOME, ["*.nix", "!ok.nix", "!.bashrc", "late/", "~/jobs"])

    assert extended.rule_for(HOME + b"/a/b.nix") == "*.nix"
    assert extended.rule_for(HOME + b"/ok.nix") is None
    assert extended.rule_for(HOME + b"/.bashrc") == ".bashrc"
    assert extended.rule_for(HOME + b"/late/x") == "late/"
    assert extended.rule_for(HOME + b"/late", is_dir=True) == "late/"
    assert extended.rule_for(HOME + b"/late", is_dir=False) is None
    assert extended.rule_for(HOME + b"/jobs/x") == "~/jobs"
    assert extended.rule_for(b"/srv/jobs") is None
    assert CLASS.rule_for(HOME + b"/a/b.nix") is None


def test_a_line_that_cannot_be_used_is_named() -> None:
    with pytest.raises(RuleError) as caught:
        RunsLater(HOME, ["a", "["])

    assert caught.value.index == 1


@given(path=strategies.any_bytes, is_dir=st.sampled_from([None, True, False]))
def test_the_class_is_total_and_judges_the_normalised_path(
    path: bytes, is_dir: bool | None
) -> None:
    assert CLASS.rule_for(path, is_dir=is_dir) == CLASS.rule_for(
        paths.normalise(path), is_dir=is_dir
    )


@given(path=strategies.paths)
def test_what_is_not_known_is_read_as_a_file(path: bytes) -> None:
    if CLASS.rule_for(path, is_dir=True) or CLASS.rule_for(path, is_dir=False):
        assert CLASS.rule_for(path, is_dir=None) is not None


def test_many_names_are_forgotten_again() -> None:
    extended = RunsLater(HOME)
    for number in range(1 << 14):
        extended.rule_for(b"/%d" % number)
    assert len(extended._candidates) == 1 << 14

    assert extended.rule_for(b"/.bashrc") == ".bashrc"
    assert len(extended._candidates) == 1
