"""The notification servers that people have, on a screen, answered with a mouse."""

from __future__ import annotations

import html
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest
import trio

from lamfuse.core import wording
from lamfuse.core.approval import Offer, Scope, State, Text
from lamfuse.core.operations import Operation
from lamfuse.core.target import Caller, FileKind, Identity, Request, Subject
from lamfuse.engine.broker import Broker, Limits, Outcome
from lamfuse.notify.desktop import Desktop
from lamfuse.notify.popup import ARMING_S
from tests.engine.fakes import FakeCallers, FakeJournal
from tests.notify.real_servers import Place, Screen, place_of, screen_of

pytestmark = pytest.mark.requirement("H4", "H30")

HOME = b"/home/lam"
DOWNLOADS = b"/home/lam/Downloads"
DAY_NS = 86_400 * 10**9
NOW_NS = 20_000 * DAY_NS
CALLER = Caller(4411, 4411, b"/usr/bin/python3.12")
WITH_BUTTONS = ["mate", "xfce"]


@dataclass(frozen=True)
class Case:
    """A call, what is offered for it, and what is expected to be said."""

    request: Request
    offers: tuple[Offer, ...]
    default: Scope
    buttons: int
    says: str


def subject(name: bytes, *, exists: bool = True, size: int = 1240, lines: int = 40) -> Subject:
    identity = Identity(1, 2) if exists else None
    return Subject(
        DOWNLOADS + b"/" + name,
        FileKind.FILE if exists else None,
        identity,
        Identity(1, 3),
        size=size,
        mtime_ns=NOW_NS - 3 * DAY_NS,
        lines=lines,
    )


def request(operation: Operation, *subjects: Subject) -> Request:
    return Request(operation, "claude-1", CALLER, subjects)


ONCE = Offer(Scope.ONCE)
FOLDER = Offer(Scope.FOLDER, DOWNLOADS, 3)
CASES = {
    "overwrite": Case(
        replace(
            request(Operation.WRITE, subject(b"report <b>&amp;.md")),
            truncates=True, new_size=2180, new_lines=61,
        ),
        (ONCE, Offer(Scope.FILE, DOWNLOADS + b"/report.md"), FOLDER),
        Scope.FILE,
        3,
        "Overwrite report <b>&amp;.md?",
    ),
    "create": Case(
        replace(
            request(Operation.CREATE, subject("\u202egpj.תמונה\n.exe".encode(), exists=False)),
            new_size=812, new_lines=20,
        ),
        (ONCE, Offer(Scope.FILE, DOWNLOADS + b"/may.md"), FOLDER),
        Scope.FILE,
        3,
        "Create ",
    ),
    "delete": Case(
        request(Operation.UNLINK, subject(b"thesis.tex", size=48112, lines=1204)),
        (ONCE,),
        Scope.ONCE,
        2,
        "Delete thesis.tex?",
    ),
    "move": Case(
        request(Operation.RENAME, subject(b"a.txt"), subject(b"old/a.txt", exists=False)),
        (ONCE,),
        Scope.ONCE,
        2,
        "Move a.txt?",
    ),
    "storm": Case(
        request(Operation.UNLINK, subject(b"build/part-001.o")),
        (ONCE, Offer(Scope.LISTED, DOWNLOADS + b"/build", 214)),
        Scope.ONCE,
        3,
        "Delete part-001.o?",
    ),
}  # fmt: skip


def describe(
    request: Request, question_id: str, offers: tuple[Offer, ...], runs_later: tuple[bytes, ...]
) -> Text:
    return wording.describe(request, HOME, NOW_NS, question_id=question_id, offers=offers)


@pytest.fixture(scope="module")
def screen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Screen]:
    with screen_of(tmp_path_factory.mktemp("screen")) as screen:
        yield screen


@dataclass
class Room:
    """A person's desk: the server and its screen, the channel, and the broker behind it."""

    place: Place
    desktop: Desktop
    broker: Broker
    nursery: trio.Nursery

    async def ask(self, case: str) -> Asked:
        """Ask, and return when the question is shown."""
        of = CASES[case]
        asked = Asked(of)
        self.nursery.start_soon(asked.run, self.broker)
        with trio.fail_after(10):
            with self.broker.events() as events:
                while not any(q.state is State.SHOWN for q in self.broker.questions()):
                    await events.receive()
        assert self.broker.questions()[0].text.title.startswith(of.says)
        return asked


class Asked:
    """A call that waits for its outcome."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._done = trio.Event()
        self._outcome: Outcome | None = None
        self.scope = trio.CancelScope()

    async def run(self, broker: Broker) -> None:
        case = self._case
        with self.scope:
            self._outcome = await broker.ask(case.request, case.offers, case.default, "key")
        self._done.set()

    async def outcome(self) -> Outcome:
        with trio.fail_after(10):
            await self._done.wait()
        assert self._outcome is not None
        return self._outcome


@pytest.fixture
async def room(
    request: pytest.FixtureRequest, screen: Screen, short_dir: Path, nursery: trio.Nursery
) -> AsyncIterator[Room]:
    """Have the server that is named; an arming delay, or a line for dunst, may stand behind it."""
    name, _, more = request.param.partition(" ")
    arming_s, dunstrc = ("", more) if name == "dunst" else (more, "")
    async with place_of(name, screen, short_dir, dunstrc=dunstrc) as place:
        broker = Broker((), FakeJournal(), FakeCallers(), Limits(), describe)
        desktop = Desktop(
            HOME,
            broker.standing,
            address=lambda: place.bus.address,
            arming_s=float(arming_s or ARMING_S),
            again_s=(0.05, 0.1),
        )
        broker.notifiers = (desktop,)
        await nursery.start(partial(run, broker))
        await nursery.start(partial(run, desktop))
        await until_ready(desktop)
        yield Room(place, desktop, broker, nursery)
        broker.close()
        await place.gone()
        nursery.cancel_scope.cancel()


async def run(what: Broker | Desktop, *, task_status: trio.TaskStatus[None]) -> None:
    await what.run(task_status=task_status)


async def until_ready(desktop: Desktop) -> None:
    with trio.fail_after(15):
        while not desktop.is_ready():  # noqa: ASYNC110 - a server that starts has no event
            await trio.sleep(0.05)


BUTTONS = [
    pytest.param("overwrite", 0, None, id="overwrite-decline"),
    pytest.param("overwrite", 1, Scope.FILE, id="overwrite-allow"),
    pytest.param("create", 2, Scope.FOLDER, id="create-allow-folder"),
    pytest.param("delete", 1, Scope.ONCE, id="delete-allow"),
    pytest.param("move", 1, Scope.ONCE, id="move-allow"),
    pytest.param("storm", 2, Scope.LISTED, id="storm-allow-these"),
]


@pytest.mark.parametrize(
    ("room", "case", "button", "scope"),
    [
        *(pytest.param("mate", *of.values, id=f"mate-{of.id}") for of in BUTTONS),
        *(pytest.param("xfce", *of.values, id=f"xfce-{of.id}") for of in BUTTONS[:4]),
    ],
    indirect=["room"],
)
async def test_a_button_does_what_it_says(
    room: Room, case: str, button: int, scope: Scope | None
) -> None:
    asked = await room.ask(case)
    buttons = await room.place.buttons(f"{room.place.name}-{case}")
    assert len(buttons) == CASES[case].buttons
    await trio.sleep(ARMING_S)  # the time in which it is read
    await room.place.click(buttons[button])
    outcome = await asked.outcome()

    assert outcome.state is (State.DECLINED if scope is None else State.ALLOWED)
    if scope is not None:
        assert outcome.answer is not None
        assert outcome.answer.scope is scope


@pytest.mark.parametrize("room", ["mate 4"], indirect=True)
async def test_a_click_that_was_meant_for_something_else_is_asked_again(room: Room) -> None:
    asked = await room.ask("delete")
    first = await room.place.window()
    buttons = await room.place.buttons(f"{room.place.name}-hasty-1")
    await room.place.click(buttons[1])
    await room.place.window(other_than=first)  # the next one says why, and is higher
    buttons = await room.place.buttons(f"{room.place.name}-hasty-2")
    assert [question.state for question in room.broker.questions()] == [State.SHOWN]
    await trio.sleep(4.0)
    await room.place.click(buttons[1])

    assert (await asked.outcome()).state is State.ALLOWED


@pytest.mark.parametrize("room", WITH_BUTTONS, indirect=True)
async def test_a_click_beside_the_buttons_declines(room: Room) -> None:
    asked = await room.ask("delete")
    window = await room.place.window()
    await trio.sleep(ARMING_S)
    await room.place.click((window.x + window.width // 2, window.y + 12))

    assert (await asked.outcome()).state is State.DECLINED


@pytest.mark.parametrize("room", ["mate"], indirect=True)
async def test_the_cross_of_mate_is_told_as_expiry_and_so_is_no_answer(room: Room) -> None:
    asked = await room.ask("delete")
    window = await room.place.window()
    await trio.sleep(ARMING_S)
    await room.place.click((window.x + window.width - 32, window.y + 26))

    assert (await asked.outcome()).state is State.LOST


@pytest.mark.requirement("L4")
@pytest.mark.parametrize("room", ["dunst", *WITH_BUTTONS], indirect=True)
async def test_a_question_that_is_withdrawn_leaves_the_screen(room: Room) -> None:
    asked = await room.ask("delete")
    await room.place.window()
    asked.scope.cancel()

    await room.place.gone()


@pytest.mark.requirement("H17")
@pytest.mark.parametrize("room", ["dunst", *WITH_BUTTONS], indirect=True)
async def test_a_killed_server_refuses_and_the_next_one_asks(room: Room) -> None:
    asked = await room.ask("delete")
    room.place.server.restart()
    outcome = await asked.outcome()
    assert outcome.state is State.LOST

    await until_ready(room.desktop)
    following = await room.ask("overwrite")
    await room.place.window()
    following.scope.cancel()


@pytest.mark.parametrize("room", ["dunst"], indirect=True)
class TestDunst:
    """It has no buttons: a menu, its program dunstctl, and the mouse."""

    @pytest.mark.parametrize(
        ("case", "label", "scope"),
        [
            pytest.param("overwrite", "Decline", None, id="overwrite-decline"),
            pytest.param("overwrite", "Allow", Scope.FILE, id="overwrite-allow"),
            pytest.param(
                "create",
                "Allow folder this turn (3 files in it)",
                Scope.FOLDER,
                id="create-allow-folder",
            ),
            pytest.param("delete", "Allow once", Scope.ONCE, id="delete-allow"),
            pytest.param("move", "Allow once", Scope.ONCE, id="move-allow"),
            pytest.param("storm", "Allow these 214", Scope.LISTED, id="storm-allow-these"),
        ],
    )
    async def test_its_menu_answers(
        self, room: Room, case: str, label: str, scope: Scope | None
    ) -> None:
        room.place.will_choose(label)
        asked = await room.ask(case)
        await room.place.window()
        await trio.to_thread.run_sync(room.place.screen.picture, f"dunst-{case}")
        await trio.sleep(ARMING_S)
        await room.place.dunstctl("context")
        outcome = await asked.outcome()

        assert outcome.state is (State.DECLINED if scope is None else State.ALLOWED)
        if scope is not None:
            assert outcome.answer is not None
            assert outcome.answer.scope is scope

    @pytest.mark.parametrize("arguments", [("close",), ("close-all",)], ids=" ".join)
    async def test_closed_is_declined(self, room: Room, arguments: tuple[str, ...]) -> None:
        asked = await room.ask("delete")
        await room.place.dunstctl(*arguments)

        assert (await asked.outcome()).state is State.DECLINED

    async def test_a_click_closes_and_so_declines(self, room: Room) -> None:
        asked = await room.ask("delete")
        window = await room.place.window()
        await trio.sleep(ARMING_S)
        await room.place.click((window.x + window.width // 2, window.y + window.height // 2))

        assert (await asked.outcome()).state is State.DECLINED

    async def test_its_first_action_is_not_a_yes(self, room: Room) -> None:
        """With one action, or one called default, this would take it."""
        room.place.will_choose("Decline")
        asked = await room.ask("delete")
        await trio.sleep(ARMING_S)
        await room.place.dunstctl("action", "0")

        assert (await asked.outcome()).state is State.DECLINED

    async def test_paused_it_shows_nothing_and_is_not_asked(self, room: Room) -> None:
        asked = await room.ask("delete")
        await room.place.dunstctl("set-paused", "true")

        assert (await asked.outcome()).state is State.LOST


@pytest.mark.parametrize(
    "room", ["dunst", *(f"dunst markup = {how}" for how in ("no", "strip", "full"))], indirect=True
)
async def test_dunst_shows_the_name_as_it_is_however_it_is_set(room: Room) -> None:
    asked = await room.ask("overwrite")
    await room.place.dunstctl("close")
    await asked.outcome()
    ((shown,),) = json.loads(await room.place.dunstctl("history"))["data"]
    lines = html.unescape(shown["body"]["data"]).splitlines()

    assert lines[0] in {"~/Downloads/report <b>&amp;.md", r"~/Downloads/report \x3cb>\x26amp;.md"}
