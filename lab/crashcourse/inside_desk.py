"""Exercise 2.3 in the child: the submission's loop at the desk, resumed by the agent of lesson 3.

The submission is loaded when it runs, in the recorded process alone. Everything of the agent is imported before,
so that the fence, which is up from then on, stands between the submission and what holds the answers; and the
processes that resume and check never see the submission at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crashcourse.desk import Corner, desk_of
from crashlab.errors import Violation
from longrun.inbox import SHORT_BODY_BYTES, make_inbox
from longrun.knobs import Knobs
from longrun.messages import normalised
from longrun.resume import trusting
from longrun.stream import Cut
from longrun.subjects import REQUEST, Description
from longrun.world import World

if TYPE_CHECKING:
    from crashcourse.desk import Place
    from crashcourse.inside import Later
    from crashlab.lab import Lab
    from longrun.messages import Message

End = dict[str, Any]
WHOLE = "whole"
_COUNTS = {
    "requests_not_counted": "the server counts {} requests more than requests_started says",
    "tokens_not_counted": "the answers in the transcript cost {} tokens more than tokens_used says",
    "turns_not_counted": "the transcript holds {} assistant messages more than turns says",
}


def reference(seed: int) -> Description:
    """The agent of lesson 3 on the inbox of ``seed``; it believes every whole checkpoint."""
    return Description(trusting.HARNESS, "careful", seed, make_inbox(seed, body_bytes=SHORT_BODY_BYTES))


def stored_end(place: Place, seed: int) -> End:
    """What the files and the world say once the submission's loop has returned, and that nobody resumed yet."""
    last = trusting.load(place.dir)
    world = World(place, make_inbox(seed, body_bytes=SHORT_BODY_BYTES)).view()
    messages: tuple[Message, ...] = last.messages if last else ()
    status = last.status if last else "nothing was saved"
    return {"own": True, "status": status, "world": world, "transcript": normalised(messages)}


@dataclass(frozen=True)
class SavePoints:
    """The submission's ``run(desk)`` as the workload, the agent's resume as the recovery."""

    function: Later
    seed: int

    def run(self, lab: Lab) -> End:
        """From an empty directory to the end, by the submission."""
        self.function(desk_of(lab, seed=self.seed))
        return stored_end(lab, self.seed)

    def resume(self, lab: Lab) -> End:
        """From whatever its saves have left to the end, by the agent."""
        return reference(self.seed).resume(lab)

    def check(self, lab: Lab, end: End) -> None:
        """Raise Violation unless the end is right. The run without a crash is judged elsewhere, from its record."""
        if end.get("own"):
            return
        if not end["refusals"]:
            for name, text in _COUNTS.items():
                if end[name]:
                    raise Violation(text.format(end[name]), kind="guard-bypassed")
        reference(self.seed).check(lab, end)


def cuts(seed: int) -> dict[str, dict[int, Knobs]]:
    """How the stream is cut, by name: within an amount, behind some words, at once; and twice the line breaks."""
    yen = next(text for ticket in make_inbox(seed, body_bytes=0) if (text := _yen(ticket.body)))
    amount = f'"refund_yen":{yen[:2]}'
    return {
        WHOLE: {},
        "clean-in-an-amount": {5: Knobs(cut=Cut(amount))},
        "clean-behind-words": {5: Knobs(cut=Cut("Now the"))},
        "clean-at-once": {1: Knobs(cut=Cut(1))},
        "broken-in-an-amount": {5: Knobs(cut=Cut(amount, clean=False))},
        "broken-at-the-end": {7: Knobs(cut=Cut(3, clean=False))},
    }


def _yen(text: str) -> str:
    before, _, _ = text.partition(" yen back")
    return before.rpartition(" ")[2] if before != text else ""


@dataclass(frozen=True)
class CutStreams:
    """The submission's loop under each of :func:`cuts`, in a folder and a world of its own, then the agent's resume.

    Each end is the agent's, with ``error``: what the loop raised, if it did.
    """

    function: Later
    seed: int
    names: tuple[str, ...]

    def __call__(self, lab: Lab) -> dict[str, End]:
        """All of them; what comes of it is the record of their effects, and what the files say at the end."""
        return {name: self._cut(Corner(lab, name)) for name in self.names}

    def _cut(self, corner: Corner) -> End:
        error = ""
        try:
            self.function(desk_of(corner, seed=self.seed, knobs=cuts(self.seed)[corner.name]))
        except Exception as raised:  # noqa: BLE001 - to let it out is one right answer to half an answer
            error = f"{type(raised).__name__}: {raised}"
        if corner.name == WHOLE:
            return {**stored_end(corner, self.seed), "error": error}
        return {**reference(self.seed).resume(corner), "error": error}  # type: ignore[arg-type]  # a part of a lab


def is_request(name: str) -> bool:
    """Whether an effect is a request to the model, and nothing that was done to the world."""
    return name.endswith(REQUEST)
