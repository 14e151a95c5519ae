"""Exercise 7.2 in the child: three programs on the log that was handed in, each with its own use of it.

* :class:`Notes` is the bare log, a list that grows in batches. After an error it looks at what is there, and appends
  the rest to the same log; if that fails, too, it opens the log anew.
* :class:`Letters` is a small agent that sends letters. The world has no key for a letter and cannot be asked, so all
  that keeps one from being sent twice is what the log says after a crash.
* :class:`Branches` is a conversation that goes back twice and on from there; what resumes it looks, and no more.

What is promised is acked, so the lab has a record of it that no submission can change.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crashlab.errors import Violation
from longrun.errors import InvalidTranscript
from longrun.messages import blocks, canonical, check_messages, text_of, tool_uses

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from crashlab.lab import Lab
    from longrun.messages import Block, Message

End = dict[str, Any]
SENT, NOT_STARTED, UNKNOWN = "sent", "not started", "unknown"
RESULTS = (SENT, NOT_STARTED, UNKNOWN)
LETTER = "send_letter"
REQUESTS_AT_MOST = 20
_LONG, _SHORT = 2_100, 30


@dataclass(frozen=True)
class Functions:
    """What was handed in."""

    open_log: Callable[[Path], Any]
    append: Callable[[Any, dict[str, Any]], int]
    flush: Callable[[Any], None]
    repair: Callable[[Any], None]
    project: Callable[[Any], list[Message]]
    branch: Callable[[Any, int], None]


# --- the bare log ---------------------------------------------------------------------------------


@dataclass(eq=False)
class Notes:
    """A log as a program holds it that goes on after an error."""

    use: Functions
    folder: Path
    log: Any
    unsure: bool = False

    def append(self, texts: list[str]) -> None:
        """Append the batch in one flush; what an attempt that failed has left there counts."""
        if not self.unsure:
            self.unsure = True
            self._write(texts)
        else:
            try:
                self._write(self._missing(texts))
            except OSError:
                self.log = self.use.open_log(self.folder)
                self._write(self._missing(texts))
        self.unsure = False

    def _missing(self, texts: list[str]) -> list[str]:
        have = self.load()
        there = next(n for n in range(len(texts), -1, -1) if texts[:n] == have[len(have) - n :])
        return texts[there:]

    def _write(self, texts: list[str]) -> None:
        for text in texts:
            self.use.append(self.log, {"type": "user", "text": text})
        self.use.flush(self.log)

    def load(self) -> list[str]:
        """All that the log shows."""
        return [text_of(message) for message in self.use.project(self.log)]


@dataclass(frozen=True)
class Opens:
    """How a :class:`Notes` begins, and begins again after a crash."""

    use: Functions

    def __call__(self, lab: Lab) -> Notes:
        """Open it."""
        return Notes(self.use, lab.dir, self.use.open_log(lab.dir))


def batches(seed: int) -> list[list[str]]:
    """One short, three of which two are longer than half a page, one more."""
    chance = random.Random(seed)  # noqa: S311 - the same twin for the same seed
    sizes = ([_SHORT], [_LONG, _SHORT, _LONG], [_SHORT])
    return [["".join(chance.choices("abcdefgh ij", k=size)) + "." for size in batch] for batch in sizes]


# --- an agent that sends letters ------------------------------------------------------------------


@dataclass(frozen=True)
class Letters:
    """The agent. Its model sends two letters at once and then a third, and names again what was not started."""

    use: Functions
    seed: int

    @property
    def rounds(self) -> list[list[str]]:
        """To whom it writes, in which turn."""
        chance = random.Random(self.seed)  # noqa: S311 - the same twin for the same seed
        names = chance.sample(("Abe", "Bea", "Cato", "Dora", "Egon", "Fay", "Gus", "Hana"), 3)
        return [names[:2], names[2:]]

    def work(self, lab: Lab) -> End:
        """From whatever lies there to the end."""
        use, log = self.use, self.use.open_log(lab.dir)
        use.repair(log)
        for _ in range(REQUESTS_AT_MOST):
            messages = use.project(log)
            if not messages:
                self._keep(lab, log, {"type": "user", "text": "Write to all of them."})
                continue
            if refused := refusal(messages):
                return {"refused": refused, "said": [], "over": False}
            if messages[-1]["role"] == "assistant":
                break
            answer = self._answer(messages)
            self._keep(lab, log, answer)
            for call in answer["calls"]:
                self._carry_out(lab, log, call)
        messages = use.project(log)
        for name, text in latest(messages).items():
            if text == UNKNOWN:
                lab.unknown(LETTER, to=name)
        over = messages[-1]["role"] == "assistant" and not tool_uses(messages[-1])
        return {"refused": "", "said": said(messages), "over": over}

    def _answer(self, messages: list[Message]) -> dict[str, Any]:
        """The model: a pure function of what it is shown."""
        known, number = latest(messages), sum(message["role"] == "assistant" for message in messages)
        for names in self.rounds:
            if missing := [name for name in names if known.get(name) not in (SENT, UNKNOWN)]:
                calls = [
                    {"id": f"call-{number}-{at}", "name": LETTER, "input": {"to": name}}
                    for at, name in enumerate(missing)
                ]
                return {"type": "assistant", "text": f"Now {' and '.join(missing)}.", "calls": calls}
        return {"type": "assistant", "text": "All were written to.", "calls": []}

    def _carry_out(self, lab: Lab, log: Any, call: dict[str, Any]) -> None:
        self.use.append(log, {"type": "call", "id": call["id"]})
        self.use.flush(log)
        lab.save_point("call")
        lab.effect(LETTER, **call["input"])
        self._keep(lab, log, {"type": "result", "id": call["id"], "text": SENT})

    def _keep(self, lab: Lab, log: Any, record: dict[str, Any]) -> None:
        """One record, durable; what the log shows then is promised."""
        self.use.append(log, record)
        self.use.flush(log)
        shown = said(self.use.project(log))
        lab.ack({"parts": len(shown), "digest": digest(shown)})

    def check(self, lab: Lab, end: End) -> None:
        """Raise Violation unless the end is right; letters are counted by the lab itself."""
        if end["refused"]:
            text = f"the server answered 400: {end['refused']}"
            raise Violation(text, kind="invalid-transcript")
        for ack in lab.acked:
            if digest(end["said"][: ack["parts"]]) != ack["digest"]:
                text = f"{ack['parts']} parts of the conversation were promised; it is another one now"
                raise Violation(text, kind="lost")
        if not end["over"]:
            text = "the conversation did not come to its end"
            raise Violation(text)

    def view(self, end: End) -> End:
        """What counts: a crash may add to the conversation."""
        return {name: value for name, value in end.items() if name != "said"}


def refusal(messages: Any) -> str:
    """Why the strict server would not take these messages, "" where it would; the last may be a last word."""
    try:
        check_messages(messages, may_end_with_assistant=isinstance(messages, list) and not tool_uses(messages[-1]))
    except InvalidTranscript as error:
        return str(error)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        return f"project gives no messages ({type(error).__name__}: {error})"
    strange = [text for text in results(messages) if text not in RESULTS]
    return f"a result is {strange[0]!r}; expected {' or '.join(map(repr, RESULTS))}" if strange else ""


def results(messages: Sequence[Message]) -> list[Any]:
    """The texts of all results."""
    return [block.get("content") for message in messages for block in blocks(message) if block["type"] == "tool_result"]


def latest(messages: Sequence[Message]) -> dict[str, str]:
    """To whom a letter was called for, and what became of it last."""
    names = {call["id"]: call["input"]["to"] for message in messages for call in tool_uses(message)}
    found = {}
    for message in messages:
        for block in blocks(message):
            if block["type"] == "tool_result":
                found[names[block["tool_use_id"]]] = block["content"]
    return found


def said(messages: Sequence[Message]) -> list[tuple[str, Block]]:
    """The conversation, part by part: a message of results grows while they come in, its parts do not."""
    return [(message["role"], block) for message in messages for block in blocks(message)]


def digest(parts: Sequence[Any]) -> str:
    """A short name of what was said."""
    return hashlib.sha256(canonical(list(parts)).encode()).hexdigest()[:16]


# --- a conversation with branches -----------------------------------------------------------------

FIRST, SECOND = 1, 3
"""The seq of the first and of the second answer: a user's words are 0 and 2."""


@dataclass(frozen=True)
class Branches:
    """A conversation that goes back to its first answer, on from there, and then back to the second answer."""

    use: Functions
    seed: int

    @property
    def stages(self) -> list[list[str]]:
        """What the log must show, step by step; each step is flushed, and acked."""
        chance = random.Random(self.seed)  # noqa: S311 - the same twin for the same seed
        one, two, three, four = ([f"question {each}?", f"answer {each}."] for each in chance.sample(range(100), 4))
        return [[], one, one + two, one, one + three, one + two, one + two + four]

    def run(self, lab: Lab) -> End:
        """The workload."""
        use, log = self.use, self.use.open_log(lab.dir)
        for number, (before, after) in enumerate(zip(self.stages, self.stages[1:], strict=False), 1):
            if after[: len(before)] == before:
                question, answer = after[len(before) :]
                use.append(log, {"type": "user", "text": question})
                use.append(log, {"type": "assistant", "text": answer, "calls": []})
                use.flush(log)
            else:
                use.branch(log, FIRST if len(after) == len(self.stages[1]) else SECOND)
            lab.ack(number)
        return self._shown(log, len(self.stages) - 1)

    def resume(self, lab: Lab) -> End:
        """Look at what is there."""
        log = self.use.open_log(lab.dir)
        self.use.repair(log)
        return self._shown(log, 0)

    def _shown(self, log: Any, stage: int) -> End:
        return {"texts": [text_of(message) for message in self.use.project(log)], "stage": stage}

    def check(self, lab: Lab, end: End) -> None:
        """Raise Violation unless the log shows what was promised last, or some of what was being added to it."""
        stages, done = self.stages, max(lab.acked, default=end["stage"])  # without a crash, there are no acks before it
        allowed = [stages[done]]
        if done + 1 < len(stages):
            after = stages[done + 1]
            grows = after[: len(stages[done])] == stages[done]
            allowed += [after[:size] for size in range(len(stages[done]) + 1, len(after) + 1)] if grows else [after]
        if end["texts"] not in allowed:
            text = f"shown is {' '.join(end['texts'])!r}, expected {' '.join(allowed[0])!r}"
            raise Violation(text, kind="diverged")
