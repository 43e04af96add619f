"""What the pages say is so: commands exist, examples load, links lead somewhere."""

import re
import shlex
import tomllib
from pathlib import Path

import click
import pytest

from lamfuse.cli import main
from lamfuse.store import config

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
COMMANDS = click.Context(main._lamfuse)

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def blocks(page: Path, *languages: str) -> list[str]:
    """Return the fenced blocks of a page in one of these languages."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    return [text for language, text in found if language in languages]


def options_of(command: click.Command) -> set[str]:
    return {
        option
        for parameter in command.params
        for option in [*parameter.opts, *parameter.secondary_opts]
    } | {"-h", "--help"}


@each_page
def test_a_link_leads_to_a_file(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)", page.read_text())

    assert [target for target in targets if not (page.parent / target).exists()] == []


@each_page
def test_every_command_in_an_example_exists_with_its_options(page: Path) -> None:
    wrong = []
    for line in "\n".join(blocks(page, "sh", "console")).splitlines():
        words = shlex.split(line.removeprefix("$ "), comments=True)
        if not words or words[0] != "lamfuse":
            continue
        command = main._lamfuse.get_command(COMMANDS, words[1])
        if command is None:
            wrong.append(line)
        else:
            written = {word.partition("=")[0] for word in words[2:] if word.startswith("-")}
            wrong += [f"{line}: {option}" for option in written - options_of(command)]

    assert wrong == []


@each_page
def test_every_script_that_is_named_can_be_run(page: Path) -> None:
    named = set(re.findall(r"\bscripts/(\w+)", page.read_text()))

    assert [name for name in sorted(named) if not is_program(ROOT / "scripts" / name)] == []


def is_program(path: Path) -> bool:
    return path.is_file() and bool(path.stat().st_mode & 0o100)


@each_page
def test_every_configuration_in_an_example_is_valid(page: Path, tmp_path: Path) -> None:
    for number, text in enumerate(blocks(page, "toml")):
        tomllib.loads(text)
        file = tmp_path / f"{number}.toml"
        file.write_text(text)
        file.chmod(0o600)

        loaded = config.load(bytes(file), bytes(tmp_path), must_exist=True)

        assert loaded.notes == ()


@pytest.mark.requirement("H7")
def test_the_readme_says_that_reading_is_disclosure() -> None:
    text = (ROOT / "README.md").read_text()

    assert "What an agent reads goes to the provider of its model." in text


@pytest.mark.requirement("H33")
@pytest.mark.parametrize(
    "limit",
    [
        pytest.param("The denylist is a list of guesses", id="guesses"),
        pytest.param("a write root can be damaged", id="damage"),
        pytest.param("pointed at a mount runs with your rights outside it", id="cooperation"),
    ],
)
def test_the_readme_states_the_known_limits(limit: str) -> None:
    assert limit in (ROOT / "README.md").read_text()
