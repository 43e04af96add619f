"""Making the kernel forget ends before the session does."""

import errno
import threading

import pyfuse3
import pytest

from lamfuse.fuse.cache import KernelCache


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Give the list of what the kernel was asked to forget."""
    calls: list[object] = []
    monkeypatch.setattr(pyfuse3, "invalidate_inode", calls.append)
    monkeypatch.setattr(pyfuse3, "invalidate_entry", lambda *place: calls.append(place))
    return calls


def test_names_and_contents_are_forgotten(asked: list[object]) -> None:
    KernelCache().drop_all([(1, b"a")], [7, 8])

    assert asked == [(1, b"a"), 7, 8]


def test_after_the_end_the_kernel_is_asked_nothing(asked: list[object]) -> None:
    cache = KernelCache()
    assert cache.close(0)

    cache.drop_all([(1, b"a")], [7])

    assert asked == []


def test_the_end_waits_for_what_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, release = threading.Event(), threading.Event()

    def invalidate(nodeid: int) -> None:
        del nodeid
        begun.set()
        assert release.wait(10)

    monkeypatch.setattr(pyfuse3, "invalidate_inode", invalidate)
    cache = KernelCache()
    thread = threading.Thread(target=cache.drop_pages, args=(7,))
    thread.start()
    assert begun.wait(10)

    assert not cache.close(0)
    release.set()
    assert cache.close(10)
    thread.join(10)


@pytest.mark.parametrize("number", [errno.ENOENT, errno.ENOTCONN])
def test_what_the_kernel_does_not_know_is_forgotten_already(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def invalidate(nodeid: int) -> None:
        raise OSError(number, f"inode {nodeid}")

    monkeypatch.setattr(pyfuse3, "invalidate_inode", invalidate)

    KernelCache().drop_pages(7)


@pytest.mark.expects_log("did not forget inode 7")
def test_anything_else_is_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    def invalidate(nodeid: int) -> None:
        raise OSError(errno.EINVAL, f"inode {nodeid}")

    monkeypatch.setattr(pyfuse3, "invalidate_inode", invalidate)

    KernelCache().drop_pages(7)
