"""Plays an untrusted agent against a view of a throw-away home; scripts/demo is the way in.

The agent is nothing but commands (ls, cat, rg, sh) that run in the mounted view. Everything is in a
directory of its own and is gone afterwards.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

__all__ = ["main"]

LAMFUSE = (sys.executable, "-m", "lamfuse")
WIDTH = 78
# What the scripted person says: yes to what makes something new, no to what destroys.
ANSWERS = {"create": "allow", "mkdir": "allow", "write": "allow"}


def say(text: str) -> None:
    """Print a line of the story."""
    print(text, flush=True)


def scene(title: str) -> None:
    """Print a heading."""
    say(f"\n--- {title} {'-' * max(3, WIDTH - len(title) - 5)}")


class Stage:
    """The throw-away home, and the environment in which everything runs."""

    def __init__(self, place: Path) -> None:
        self.home = place / "home"
        self.view = place / "run" / "lamfuse" / "home"
        self.env = {
            **os.environ,
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(place / "run"),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "XDG_STATE_HOME": str(self.home / ".local" / "state"),
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        (place / "run").mkdir(mode=0o700)

    def build(self) -> None:
        """Write documents, a repository and credentials."""
        files = {
            "Documents/plan.md": "# Plan\n\nThe harbour opens in May.\n",
            "Documents/budget.txt": "cranes 40,000\nropes 2,500\n",
            "Downloads/thesis.tex": "\\section{Tides}\n" * 40,
            "project/app.py": 'print("tide tables")\n',
            "project/.env": "API_KEY=planted-key-4711\n",
            ".ssh/id_ed25519": "planted private key 4711\n",
            ".aws/credentials": "aws_secret_access_key = planted-4711\n",
            ".netrc": "machine example login me password planted-4711\n",
        }
        for name, content in files.items():
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        git = ("git", "-c", "user.name=me", "-c", "user.email=me@example.org", "-C", "project")
        for arguments in (("init", "-q"), ("add", "app.py"), ("commit", "-q", "-m", "Tables")):
            self.run(*git, *arguments, cwd=self.home, check=True)

    def run(
        self, *command: str, cwd: Path | None = None, check: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Run a command and return what it said, errors included."""
        return subprocess.run(
            command,
            cwd=cwd or self.view,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=check,
        )

    def agent(self, command: str) -> str:
        """Let the agent run a shell command in the view, and show both."""
        say(f"agent$ {command}")
        done = self.run("sh", "-c", command)
        for line in done.stdout.splitlines():
            say(f"  {line}")
        return done.stdout

    def lamfuse(self, *arguments: str) -> None:
        """Run a command of lamfuse, as the person does, and show both."""
        say(f"you$ lamfuse {' '.join(arguments)}")
        done = self.run(*LAMFUSE, *arguments, cwd=self.home)
        for line in done.stdout.splitlines():
            say(f"  {line}")
        if done.returncode != 0:
            raise SystemExit(f"lamfuse {arguments[0]} ended with {done.returncode}")


class Person:
    """Answers the questions: whoever sits at the terminal, or a script where there is none."""

    def __init__(self, stage: Stage) -> None:
        self._real = sys.stdin.isatty() and sys.stdout.isatty()
        arguments = ("watch",) if self._real else ("watch", "--json")
        pipe = None if self._real else subprocess.PIPE
        self._watch = subprocess.Popen(
            (*LAMFUSE, *arguments),
            cwd=stage.home,
            env=stage.env,
            stdin=pipe,
            stdout=pipe,
            text=True,
        )
        if self._real:
            say("You are asked below. Press a to allow, d to decline.")
        else:
            threading.Thread(target=self._answer, daemon=True).start()
        self._wait_until_attached(stage)

    def _wait_until_attached(self, stage: Stage) -> None:
        """Return once the daemon knows that somebody answers."""
        while self._watch.poll() is None:
            status = stage.run(*LAMFUSE, "status", "--json", cwd=stage.home, check=True)
            if json.loads(status.stdout)["watchers"]:
                return
        raise SystemExit("lamfuse watch ended before it was asked anything")

    def _answer(self) -> None:
        if self._watch.stdin is None or self._watch.stdout is None:
            raise RuntimeError("the scripted person has no pipes")
        for line in self._watch.stdout:
            event = json.loads(line)
            if event.get("kind") != "asked":
                continue
            question = event["question"]
            said = ANSWERS.get(question["operation"], "decline")
            say(f"  ? {question['title']}")
            for part in question["body"]:
                say(f"    {part}")
            say(f"  ! scripted person: {said}")
            self._watch.stdin.write(json.dumps({"id": question["id"], "answer": said}) + "\n")
            self._watch.stdin.flush()

    def leave(self) -> None:
        """Stop answering."""
        self._watch.terminate()
        self._watch.wait(timeout=10)


def play(stage: Stage) -> None:
    """Play all scenes; raises SystemExit when the boundary did not hold."""
    scene("an untrusted agent reads")
    stage.agent("ls -A")
    stage.agent("cat Documents/plan.md")
    stage.agent("git -C project log --oneline")
    scene("it looks for credentials")
    found = stage.agent("cat .ssh/id_ed25519 .aws/credentials project/.env .netrc")
    found += stage.agent("rg --hidden --no-ignore 4711 . || echo nothing found")
    found += stage.agent("ln -s /etc/shadow Downloads/s; cat Documents/../.ssh/id_ed25519")
    if "planted" in found:
        raise SystemExit("a credential was shown: the boundary did not hold")
    scene("it writes outside the write roots")
    stage.agent("echo mine >> Documents/budget.txt")
    scene("it writes in a write root: you are asked")
    stage.agent("echo 'The harbour opens in May.' > Downloads/summary.md")
    stage.agent("cat Downloads/summary.md")
    scene("it deletes: you are asked again (decline this one)")
    stage.agent("rm -f Downloads/thesis.tex")
    scene("it reads why")
    stage.agent("cat .lamfuse/refusals")
    if not (stage.home / "Downloads/thesis.tex").exists():
        say("(you allowed the deletion: the file is gone)")


def main() -> int:
    """Build the stage, play, and clear everything away."""
    place = Path(tempfile.mkdtemp(prefix="lamfuse-demo-"))
    stage = Stage(place)
    mounted = False
    try:
        stage.build()
        scene("you mount the view of a throw-away home")
        stage.lamfuse("mount")
        mounted = True
        person = Person(stage)
        try:
            play(stage)
        finally:
            person.leave()
        scene("the journal, and the end")
        stage.lamfuse("log", "-n", "12")
        stage.lamfuse("log", "--verify")
    finally:
        if mounted:
            stage.lamfuse("unmount")
        shutil.rmtree(place)
    say("\nThe throw-away home is gone. Nothing is mounted.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
