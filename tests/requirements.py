"""The requirements, each with its text and its state; tests/test_requirements.py keeps them honest.

H: a home directory for an assistant. R: one directory as a rooted file system over MCP. L: what
lamfuse adds to both. A test names what it covers with `@pytest.mark.requirement("H5", "L9")`.
`COVERED` means that at least one test does, and `rest` says what part of it is still to come. Any
other state names the part of lamfuse that will bring it, and then no test may claim it.
"""

from typing import NamedTuple

__all__ = ["COVERED", "REQUIREMENTS", "Requirement"]

COVERED = "covered"

HOME_TOOLS = "later: with the seven home tools over MCP"
ROOTED_TOOLS = "later: with the ten rooted tools over MCP"
RUN = "later: with `lamfuse run`"
SPEED = "later: with coherent kernel caching and the benchmarks"


class Requirement(NamedTuple):
    """What must hold, and whether tests cover it yet."""

    text: str
    state: str = COVERED
    rest: str = ""


REQUIREMENTS: dict[str, Requirement] = {
    "H1": Requirement("List a directory, find files by name or content, read a file."),
    "H2": Requirement("Create, overwrite, edit, delete and move files."),
    "H3": Requirement(
        "Nothing outside the roots is readable or writable; no symlink and no `..` changes that."
    ),
    "H4": Requirement(
        "Every change is approved by the person, with the exact path on screen; no is a normal end."
    ),
    "H5": Requirement("Credential stores are unreadable by default."),
    "H6": Requirement("A refusal says what happened and what may be done instead."),
    "H7": Requirement("Reading is disclosure, and README and the agent's text say so."),
    "H8": Requirement(
        "The seven tools: no shell, recursive delete, mkdir, patch or copy; exact substitution.",
        HOME_TOOLS,
    ),
    "H9": Requirement("An approval covers one resolved path for one turn; folders by choice."),
    "H10": Requirement(
        "Deleting and moving ask every time, but for four exceptions; no file grant reaches them."
    ),
    "H11": Requirement("Reads are bounded by home minus the denylist, plus read roots."),
    "H12": Requirement(
        "Delete takes one file or one empty directory; else the refusal has the entry count.",
        HOME_TOOLS,
    ),
    "H13": Requirement(
        "The move tool refuses an existing destination, naming both paths.", HOME_TOOLS
    ),
    "H14": Requirement("The question of an overwrite has the file's size and line count."),
    "H15": Requirement("Relative paths resolve against home; a leading ~ or ~/ is expanded."),
    "H16": Requirement(
        "Search is capped in depth and results and skips what is hidden.", HOME_TOOLS
    ),
    "H17": Requirement("An approval that cannot be shown is refused."),
    "H18": Requirement("The ledger is keyed by the resolved real path."),
    "H19": Requirement(
        "Tools for the agent are off until switched on, and absent until then.",
        rest="that the seven home tools heed it",
    ),
    "H20": Requirement("The order of path resolution; containment by components."),
    "H21": Requirement("The default denylist, always applied; additions in gitignore syntax."),
    "H22": Requirement("The default write roots; more by the person; a missing root is kept."),
    "H23": Requirement("Roots as text: split, trimmed, expanded, bad entries reported alone."),
    "H24": Requirement("Results of the tools are values: ok, or policy, approval, io.", HOME_TOOLS),
    "H25": Requirement("list_directory: directories first, sorted, at most 200.", HOME_TOOLS),
    "H26": Requirement(
        "search_files: glob, substring in the first 64 KB, 50, depth 8.", HOME_TOOLS
    ),
    "H27": Requirement(
        "read_file: numbered lines, 200 or 8,000 characters, no binary.", HOME_TOOLS
    ),
    "H28": Requirement("write_file: missing parents disclosed; Created or Overwrote.", HOME_TOOLS),
    "H29": Requirement("edit_file: exactly one match, or all; substitution shown.", HOME_TOOLS),
    "H30": Requirement(
        "A question has title, body, destructive mark; no policy refusal gets there."
    ),
    "H31": Requirement("Refusal texts are short, factual and say what to do next."),
    "H32": Requirement("The text for the agent: write roots, approvals, finality, disclosure."),
    "H33": Requirement("Known limits are stated; every operation acts on a directory descriptor."),
    "R1": Requirement("Everything is relative to one root; no host path is named.", ROOTED_TOOLS),
    "R2": Requirement("Containment by the kernel, from one directory descriptor.", ROOTED_TOOLS),
    "R3": Requirement("Ten tools, fs_stat to fs_delete.", ROOTED_TOOLS),
    "R4": Requirement("--read-only registers only the five read tools.", ROOTED_TOOLS),
    "R5": Requirement("Search is ripgrep; without it the server does not start.", ROOTED_TOOLS),
    "R6": Requirement("--root is required, a directory, one a process.", ROOTED_TOOLS),
    "R7": Requirement("`.` and the empty path name the root; one leading / goes.", ROOTED_TOOLS),
    "R8": Requirement("An absolute symlink is refused, even to the inside.", ROOTED_TOOLS),
    "R9": Requirement("One text block, one JSON document; scope violations marked.", ROOTED_TOOLS),
    "R10": Requirement("Bytes, not lines; the encoding is reported.", ROOTED_TOOLS),
    "R11": Requirement("if_sha256 is required on fs_write and fs_replace.", ROOTED_TOOLS),
    "R12": Requirement("fs_replace: bytes, no ambiguity, all or nothing.", ROOTED_TOOLS),
    "R13": Requirement("Atomic commit; permissions, xattrs and ACL kept or refused.", ROOTED_TOOLS),
    "R14": Requirement("_meta.args_sha256 is verified over the exact bytes.", ROOTED_TOOLS),
    "R15": Requirement("fs_move never destroys; fs_mkdir recursive; fs_delete.", ROOTED_TOOLS),
    "R16": Requirement("Caps on requests and responses.", ROOTED_TOOLS),
    "L1": Requirement("The boundary is a mount, so tools inherit it unknowingly."),
    "L2": Requirement("`lamfuse run`: the view is home, nothing gives home away.", RUN),
    "L3": Requirement("The answer is bound to what was shown, and that is checked again."),
    "L4": Requirement("A killed caller is let go at once and its question withdrawn."),
    "L5": Requirement(
        "One question for a storm, with a frozen list.",
        rest="the frozen list, and many alike shown as one: alike ones that are joined are there",
    ),
    "L6": Requirement("A turn begins with a person: hooks count after a key press only.", RUN),
    "L7": Requirement("`.lamfuse/` in the view has the rules and the latest refusals."),
    "L8": Requirement("explain, doctor, pending, allow, deny, watch, log, status."),
    "L9": Requirement("The journal has every question, answer and change; no agent reaches it."),
    "L10": Requirement("Fast: warm metadata never leaves the kernel.", SPEED),
}
