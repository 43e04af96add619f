"""``lamfuse unmount``: the orderly end of a view, or the removal of a dead one."""

from __future__ import annotations

from typing import Final

import click

from lamfuse.cli import options, render, views
from lamfuse.control import client
from lamfuse.core.errors import NotRunningError

__all__ = ["command"]

#: Seconds; the daemon refuses what is open and unmounts, lazily if the view is busy.
_TIMEOUT_S: Final = 20.0


@click.command("unmount")
@click.argument("mountpoint", required=False, type=click.Path(path_type=bytes))
@options.places
@options.as_json
def command(
    *, mountpoint: bytes | None, home: bytes | None, config: bytes | None, json: bool
) -> None:
    """Unmount the view; questions that stand are refused.

    MOUNTPOINT is needed only to take away a dead view from another place than the default.
    """
    dirs = options.places_of(home, config)
    try:
        with client.connect(dirs.socket) as connected:
            where = connected.status().mountpoint
            refused = connected.unmount(_TIMEOUT_S).refused_questions
    except NotRunningError:
        _take_dead_away(views.settle(mountpoint or dirs.mountpoint), json=json)
        return
    if json:
        render.data({"mountpoint": where, "refused_questions": refused, "was_dead": False})
        return
    click.echo(f"unmounted {where.text}")
    if refused:
        click.echo(f"{refused} open questions were refused.")


def _take_dead_away(place: bytes, *, json: bool) -> None:
    """Take a dead view away; raises :class:`NotRunningError` when there is none."""
    mount = views.mount_at(place)
    if mount is None or not views.is_view(mount) or not views.is_dead(mount):
        raise NotRunningError("No view of this home is mounted.")
    views.take_away(mount)
    if json:
        where = {"raw": place, "text": render.person_path(place)}
        render.data({"mountpoint": where, "refused_questions": 0, "was_dead": True})
    else:
        click.echo(f"took away a dead view at {render.person_path(place)}")
