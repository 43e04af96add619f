"""What the mount shows: the tree seen through the policy.

Every handler reaches an object through one of the methods here, so that whatever is hidden is met
in one place. The path that is judged is the one that the kernel gives for the open descriptor at
that moment.
"""

from __future__ import annotations

import errno
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lamfuse.core import paths
from lamfuse.core.policy import Policy
from lamfuse.core.refusals import Reason
from lamfuse.core.rules import CREDENTIAL_PLACES
from lamfuse.tree import syscalls
from lamfuse.tree.credentials import CredentialInodes
from lamfuse.tree.inodes import Inode
from lamfuse.tree.links import Anchor, Links
from lamfuse.tree.resolve import Target, Tree
from lamfuse.tree.syscalls import Stat

__all__ = ["DeniedNameError", "View"]


class DeniedNameError(Exception):
    """A name that the denylist covers was to be created: *reason* is for the refusal."""

    def __init__(self, path: bytes, rule: str) -> None:
        super().__init__(rule)
        self.path = path
        self.rule = rule
        self.reason = Reason.DENIED_NAME


class View:
    """The policy over the tree. *anchors* are home (first) and the extra roots."""

    def __init__(self, tree: Tree, policy: Policy, anchors: Sequence[Anchor]) -> None:
        self.tree = tree
        self.anchors = tuple(anchors)
        self.mountpoints: frozenset[bytes] = frozenset()
        self.rules = 0
        self.apply(policy)

    def apply(self, policy: Policy) -> None:
        """Let *policy* rule from now on; everything that was found visible is looked at again."""
        self.policy = policy
        self.rules += 1
        self.links = Links(self.anchors, policy.link_ok, self._hides_path)
        self._credentials = CredentialInodes(self.tree.home, CREDENTIAL_PLACES)
        self.tree.directories.forget_all()
        self.forget_verified()

    def forget_verified(self) -> None:
        """Look again at every directory that was found visible."""
        for inode in self.tree.inodes:
            inode.verified = None

    def hidden_names(self) -> list[tuple[int, bytes]]:
        """Return (node id of the directory, name) of what the kernel knows and the rules hide.

        By the places where things were seen last: for what the kernel keeps, that is what counts.
        """
        places = {self.tree.inodes.find(*_key(anchor.fd)): anchor.path for anchor in self.anchors}
        found = []
        for inode in self.tree.inodes:
            for parent, name in inode.names():
                directory = _place(parent, places)
                if directory is None:
                    continue
                path = paths.join(directory, name)
                if not self.policy.is_readable(path, is_dir=inode.is_directory):
                    found.append((parent.nodeid, name))
        return found

    def directory(self, inode: Inode) -> tuple[int, bytes]:
        """Return (descriptor, real path) of the visible directory *inode*.

        ENOENT when it is hidden.

        The descriptor is good until the next call.
        """
        fd = self.tree.directories.fd(inode)
        path = syscalls.real_path(fd)
        if path != inode.verified:
            if not self.policy.is_readable(path, is_dir=True):
                raise FileNotFoundError(errno.ENOENT, "hidden")
            inode.verified = path
        return fd, path

    def child(self, parent: Inode, name: bytes) -> tuple[int, bytes, Stat]:
        """Return (descriptor of the directory, its real path, stat) for a visible entry.

        Else ENOENT.
        """
        dirfd, directory = self.directory(parent)
        return dirfd, directory, self.entry_stat(parent, dirfd, directory, name)

    def entry_stat(self, parent: Inode, dirfd: int, directory: bytes, name: bytes) -> Stat:
        """Return the stat of the visible entry *name*; ENOENT for a hidden one, existing or not."""
        rule = self.policy.denylist.rule_for_name(directory, name, is_dir=None)
        if rule is not None and rule.kind == "own":
            raise FileNotFoundError(errno.ENOENT, "hidden")
        if self.mountpoints and paths.join(directory, name) in self.mountpoints:
            raise FileNotFoundError(errno.ENOENT, "another file system")
        seen = syscalls.stat_at(dirfd, name)
        is_dir = stat.S_ISDIR(seen.mode)
        if rule is not None and self.policy.denylist.rule_for_name(directory, name, is_dir=is_dir):
            raise FileNotFoundError(errno.ENOENT, "hidden")
        why = self._hides_object(parent, directory, name, seen)
        if why:
            raise FileNotFoundError(errno.ENOENT, why)
        return seen

    def _hides_object(self, parent: Inode, directory: bytes, name: bytes, seen: Stat) -> str:
        """Tell why what stands as *name* is hidden whatever its name is; empty: it is not."""
        if (seen.mount, seen.dev) != (parent.mount, parent.dev) and not self._may_cross(
            parent, directory, name, seen
        ):
            return "another file system"
        if seen.links > 1 and not stat.S_ISDIR(seen.mode) and self._credentials.holds(seen):
            return "hidden under another name"
        return ""

    def locate(self, inode: Inode) -> tuple[int, bytes, bytes, Stat]:
        """Return (dirfd, directory path, name, stat) by a visible name that still leads to *inode*.

        For a directory the descriptor is its own and the name empty. ESTALE when no name is left.
        """
        if inode.is_directory:
            fd, path = self.directory(inode)
            return fd, path, b"", syscalls.fstat(fd)
        for parent, name in inode.names():
            try:
                dirfd, directory, seen = self.child(parent, name)
            except FileNotFoundError:
                continue  # gone or hidden: the name stays, it may be visible again after a reload
            except OSError as error:
                if error.errno not in _NOT_THERE:
                    raise
            else:
                if inode.is_object(seen):
                    return dirfd, directory, name, seen
            inode.drop_name(parent, name)
        raise OSError(errno.ESTALE, "it is no longer where it was seen")

    def open_visible(self, inode: Inode) -> Target:
        """Return the visible object *inode*, held open, with the place where it was found."""
        dirfd, _, name, _ = self.locate(inode)
        if inode.is_directory:
            return self.tree.directory(inode)
        target = Target(syscalls.duplicate(dirfd), name, -1, inode)
        try:
            target.refresh()
            if target.fd < 0 or not inode.is_object(target.stat()):
                raise OSError(errno.ESTALE, "it is no longer where it was seen")
            if not self.policy.is_readable(target.path(), is_dir=False):
                raise OSError(errno.EACCES, "hidden")
        except BaseException:
            target.__exit__(None, None, None)
            raise
        return target

    @contextmanager
    def entry(self, parent: Inode, name: bytes) -> Iterator[Target]:
        """Give the target for the name *name* in the visible directory *parent*.

        Raises DeniedNameError for a name that is hidden, whether or not something stands there.
        """
        _, directory = self.directory(parent)
        path = paths.join(directory, name)
        if path in self.mountpoints:
            raise DeniedNameError(path, "another file system")
        rule = self.policy.denylist.rule_for_name(directory, name, is_dir=None)
        if rule is not None and rule.kind == "own":
            raise DeniedNameError(path, f"denylist: {rule.text}")
        with self.tree.entry(parent, name) as target:
            if target.fd >= 0:
                seen = target.stat()
                if rule is not None:
                    is_dir = stat.S_ISDIR(seen.mode)
                    rule = self.policy.denylist.rule_for_name(directory, name, is_dir=is_dir)
                why = self._hides_object(parent, directory, name, seen)
                if why:
                    raise DeniedNameError(path, why)
            if rule is not None:
                raise DeniedNameError(path, f"denylist: {rule.text}")
            yield target

    def link_text(self, inode: Inode, dirfd: int, directory: bytes, name: bytes) -> bytes | None:
        """Return what the link *inode*, seen as *name*, says in the view; None: it has no answer.

        The kernel does not say from where it follows the link. So there is an answer only where it
        is the same from every name that the link has, and from where the kernel takes the folder
        to be: somebody may have moved it outside the view.
        """
        fd = syscalls.open_path(dirfd, name)
        try:
            target = syscalls.read_link(fd)
        finally:
            syscalls.close(fd)
        places = {directory, *self._places_of(inode)}
        texts = {None if place is None else self.links.judge(place, target) for place in places}
        return texts.pop() if len(texts) == 1 else None

    def _places_of(self, inode: Inode) -> Iterator[bytes | None]:
        """Yield every folder from which a link can be followed; None for an unknown one."""
        is_single = inode.others is None
        for parent, name in inode.names():
            try:
                dirfd, directory = self.directory(parent)
                if not is_single and not inode.is_object(syscalls.stat_at(dirfd, name)):
                    continue
            except OSError as error:
                if error.errno not in syscalls.NOT_READABLE:
                    raise
                continue  # gone, or hidden: then it cannot be followed from there
            yield directory
            yield self.tree.shown_path(parent)

    def _hides_path(self, path: bytes, is_dir: bool | None) -> bool:  # noqa: FBT001 - called positionally by Links
        return path in self.mountpoints or not self.policy.is_readable(path, is_dir=is_dir)

    def _may_cross(self, parent: Inode, directory: bytes, name: bytes, seen: Stat) -> bool:
        """Whether another file system may be entered here: only at a configured root."""
        if seen.mount and seen.mount == parent.mount:
            return True  # one file system with several device numbers (btrfs, overlay)
        return self.policy.roots.is_root(paths.join(directory, name))


_NOT_THERE = frozenset({errno.ENOTDIR, errno.ESTALE})


def _key(fd: int) -> tuple[int, int]:
    seen = syscalls.fstat(fd)
    return seen.dev, seen.ino


def _place(inode: Inode, places: dict[Inode | None, bytes]) -> bytes | None:
    """Return where the directory *inode* was seen last; *places* holds the anchors."""
    chain: list[Inode] = []
    while inode not in places:
        if inode.parent is None or len(chain) > _DEEPEST:
            return None
        chain.append(inode)
        inode = inode.parent
    path = places[inode]
    for below in reversed(chain):
        path = places[below] = paths.join(path, below.name)
    return path


#: A path of 4,096 bytes has at most 2,048 components.
_DEEPEST = 2100
