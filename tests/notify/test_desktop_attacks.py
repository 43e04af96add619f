"""What others on the bus send in the name of the notification server, the bus or the person.

Whoever is on the bus sees every popup with its number and keys, and may send anything to anybody.
Nothing of it decides: only the owner of the notifications does, in the form that belongs to it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from jeepney import DBusAddress, HeaderFields, new_method_call, new_method_return

from lamfuse.core.approval import Answer, Scope
from tests.notify.desktop_rig import ARMING_S, Rig, ended, rig_on
from tests.notify.fake_notifications import NOTIFICATIONS, PATH, FakeServer, Popup
from tests.notify.private_bus import Client, on_bus

pytestmark = pytest.mark.requirement("H4", "H17")

forgery_is_logged = pytest.mark.expects_log("is not what the owner of the notifications sends")


@pytest.fixture
async def rig(short_dir: Path, nursery: trio.Nursery) -> AsyncIterator[Rig]:
    async with rig_on(short_dir, nursery) as rig:
        await rig.start()
        yield rig


async def yes(client: Client, popup: Popup, key: str = "file", **others: Any) -> None:
    """Say in the name of *client* that the button was pressed."""
    options: dict[str, Any] = {"path": PATH, "interface": NOTIFICATIONS, **others}
    body = options.pop("body", (popup.number, popup.key(key)))
    signature = options.pop("signature", "us")
    member = options.pop("member", "ActionInvoked")
    await client.emit(
        options["path"], options["interface"], member, signature, body, to=options.get("to")
    )


async def still_asks(rig: Rig, popup: Popup) -> None:
    """Check that a popup stands, and can be answered by the one who shows it."""
    (asking,) = rig.asked[-1:]
    await rig.settled()
    assert not asking.ended.is_set()
    assert rig.server.closed == []
    await rig.server.press(popup, "folder")
    await ended(asking)
    assert asking.answer == Answer(allow=True, scope=Scope.FOLDER, channel="desktop")


def click(key: str) -> Callable[[Popup], tuple[Any, ...]]:
    return lambda popup: (popup.number, popup.key(key))


# What goes to everybody does not even reach us: the bus is asked for the owner's signals alone.
@pytest.mark.parametrize(
    "unicast",
    [
        pytest.param(False, id="broadcast"),
        pytest.param(True, id="unicast", marks=forgery_is_logged),
    ],
)
@pytest.mark.parametrize(
    ("member", "signature", "body"),
    [
        pytest.param("ActionInvoked", "us", click("file"), id="yes"),
        pytest.param("ActionInvoked", "us", click("deny"), id="no"),
        pytest.param("NotificationClosed", "uu", lambda popup: (popup.number, 2), id="dismissed"),
    ],
)  # fmt: skip
async def test_a_signal_of_another_decides_nothing(
    rig: Rig,
    member: str,
    signature: str,
    body: Callable[[Popup], tuple[Any, ...]],
    *,
    unicast: bool,
) -> None:
    _, popup = await rig.ask()
    to = popup.by if unicast else None
    for _ in range(50):  # one line of log for all
        await rig.rogue.emit(PATH, NOTIFICATIONS, member, signature, body(popup), to=to)

    await still_asks(rig, popup)


@pytest.mark.parametrize("unicast", [False, True], ids=["broadcast", "unicast"])
async def test_the_server_may_tell_everybody_or_us_alone(rig: Rig, *, unicast: bool) -> None:
    asking, popup = await rig.ask()
    await yes(rig.server, popup, to=popup.by if unicast else None)
    await ended(asking)

    assert asking.answer == Answer(allow=True, scope=Scope.FILE, channel="desktop")


@pytest.mark.parametrize(
    "others",
    [
        pytest.param({"path": "/org/freedesktop/Other"}, id="path", marks=forgery_is_logged),
        pytest.param({"interface": "org.freedesktop.Other"}, id="interface"),
        pytest.param({"member": "ActionInvokedToo"}, id="member"),
        pytest.param(
            {"signature": "uss", "body": (1, "file", "more")}, id="longer", marks=forgery_is_logged
        ),
        pytest.param({"signature": "u", "body": (1,)}, id="shorter", marks=forgery_is_logged),
        pytest.param({"signature": "", "body": ()}, id="empty", marks=forgery_is_logged),
        pytest.param(
            {"signature": "ss", "body": ("1", "file")}, id="types", marks=forgery_is_logged
        ),
        pytest.param({"body": (1, "file")}, id="key-without-its-nonce"),
        pytest.param({"body": (1, "default")}, id="key-never-offered"),
        pytest.param({"body": (1, "")}, id="no-key"),
    ],
)  # fmt: skip
async def test_a_signal_of_the_server_that_is_not_in_order_decides_nothing(
    rig: Rig, others: dict[str, Any]
) -> None:
    _, popup = await rig.ask()
    await yes(rig.server, popup, to=popup.by, **others)

    await still_asks(rig, popup)


async def test_the_right_key_under_another_number_decides_nothing(rig: Rig) -> None:
    _, popup = await rig.ask()
    for number in (0, popup.number + 1, 2**32 - 1):
        await rig.server.invoke(number, popup.key("file"))
        await rig.server.close(number, 2)

    await still_asks(rig, popup)


async def test_the_key_of_the_question_before_decides_nothing(rig: Rig) -> None:
    first, stale = await rig.ask()
    await rig.server.press(stale, "deny")
    await ended(first)
    second, popup = await rig.ask()
    await rig.server.press(stale, "file")  # what still stands on a screen that does not take away
    await rig.server.invoke(popup.number, stale.key("file"))
    await rig.settled()
    assert not second.ended.is_set()
    await rig.server.press(popup, "deny")
    await ended(second)

    assert second.answer == Answer(allow=False, channel="desktop")


@forgery_is_logged
async def test_a_forged_change_of_owner_changes_nothing(rig: Rig) -> None:
    _, popup = await rig.ask()
    for old, new in (
        ("", rig.rogue.name),
        (rig.server.name, rig.rogue.name),
        (rig.server.name, ""),
    ):
        await rig.rogue.emit(
            "/org/freedesktop/DBus", "org.freedesktop.DBus", "NameOwnerChanged", "sss",
            (NOTIFICATIONS, old, new), to=popup.by,
        )  # fmt: skip
    await yes(rig.rogue, popup, to=popup.by)

    await still_asks(rig, popup)


async def test_who_takes_the_name_over_ends_the_question_and_cannot_answer_it(rig: Rig) -> None:
    asking, popup = await rig.ask()
    async with on_bus(rig.bus.address, FakeServer) as other:
        await other.own(NOTIFICATIONS, 2)
        await yes(other, popup, to=popup.by)
        await ended(asking)

    assert asking.answer is None
    assert str(asking.lost) == "the notification server is gone"


async def forge_replies(forger: Client, to: str, signature: str, body: tuple[Any, ...]) -> None:
    """Reply to the calls of another, under every number that could be meant."""
    for serial in range(1, 60):
        call = new_method_call(DBusAddress("/", "any.Name", "any.Interface"), "AnyCall")
        call.header.serial = serial
        call.header.fields[HeaderFields.sender] = to
        await forger.connection.send(new_method_return(call, signature, body))


@pytest.mark.expects_log(r"a reply in the name of :1\.\d came from :1\.\d")
async def test_a_forged_reply_is_not_the_number_of_the_popup(rig: Rig) -> None:
    rig.server.held = trio.Event()
    asking = rig.ask_soon()
    popup = await rig.server.shown()
    await forge_replies(rig.rogue, popup.by, "u", (4242,))
    await rig.settled(rig.rogue)
    assert not asking.shown.is_set()
    rig.server.held.set()
    with trio.fail_after(10):
        await asking.shown.wait()
    await rig.server.close(4242, 2)
    await rig.server.invoke(4242, popup.key("file"))

    await trio.sleep(ARMING_S * 1.2)
    await still_asks(rig, popup)


@forgery_is_logged
async def test_a_flood_of_forgeries_does_not_push_out_the_true_answer(rig: Rig) -> None:
    asking, popup = await rig.ask()

    async def flood(send: Callable[[], Awaitable[None]]) -> None:
        for _ in range(1500):
            await send()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(flood, lambda: yes(rig.rogue, popup, to=popup.by))
        await trio.lowlevel.checkpoint()
        await rig.server.press(popup, "deny")
        await ended(asking)
        nursery.cancel_scope.cancel()

    assert asking.answer == Answer(allow=False, channel="desktop")
