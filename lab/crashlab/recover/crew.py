"""Several workers at once: requests go out as answers come in, and no worker ever waits for the next one.

Each worker has at most two requests: the one that it works on and the one after it. Requests are
taken from their source only then, so that a stream of any length needs the same memory.
"""

from __future__ import annotations

import selectors
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from crashlab import trace as t
from crashlab.errors import Disturbed
from crashlab.observation import Answer, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from crashlab.recover.wire import Channel, Message

IN_FLIGHT = 2
_STOP_LIMIT_S = 10.0


class Crew:
    """The recovery workers of one trace."""

    def __init__(self, channels: list[Channel], log: Callable[[], str], *, in_flight: int = IN_FLIGHT) -> None:
        self._in_flight = in_flight
        self._channels = channels
        self._log = log
        self._waiting: dict[Channel, deque[str]] = {channel: deque() for channel in channels}

    @property
    def busy(self) -> bool:
        """Whether a request is unanswered."""
        return any(self._waiting.values())

    def recover(self, requests: Iterable[Message]) -> Iterator[Answer]:
        """Answers in the order in which they are ready. Raises LabError where a worker dies."""
        source = iter(requests)
        with selectors.DefaultSelector() as selector:
            for channel in self._channels:
                selector.register(channel, selectors.EVENT_READ)
            more = self._fill(source)
            while self.busy:
                for channel in self._channels:
                    events = selectors.EVENT_READ | (selectors.EVENT_WRITE if channel.has_output else 0)
                    selector.modify(channel, events)
                for key, events in selector.select():
                    channel = next(each for each in self._channels if each is key.fileobj)
                    if events & selectors.EVENT_WRITE:
                        channel.flush()
                    answers = [self._take(channel, message) for message in channel.pull()]
                    if more:
                        more = self._fill(source)
                    yield from answers
                    if channel.ended and self._waiting[channel]:
                        raise Disturbed(self._death(channel))

    def _fill(self, source: Iterator[Message]) -> bool:
        """Give requests to every worker that has room, the idlest first; False where there are no more."""
        while True:
            channel = min(self._channels, key=lambda each: len(self._waiting[each]))
            if len(self._waiting[channel]) >= self._in_flight:
                return True
            request = next(source, None)
            if request is None:
                return False
            self._waiting[channel].append(request["state"])
            channel.put(request)

    def _take(self, channel: Channel, message: Message) -> Answer:
        self._waiting[channel].popleft()
        return answer_of(message)

    def _death(self, channel: Channel) -> str:
        states = ", ".join(self._waiting[channel])
        return (
            f"{channel.name} died while it worked on {states}; a subject that kills its parent process does that. "
            f"Its log ends: {self._log() or '(empty)'}"
        )

    def stop(self) -> None:
        """End the workers; a step that is running is ended too. Returns when they have swept their places."""
        for channel in self._channels:
            channel.say_goodbye()
        deadline = time.monotonic() + _STOP_LIMIT_S
        for channel in self._channels:
            channel.wait_for_end(deadline)
            channel.close()
        self._waiting.clear()


def answer_of(form: Message) -> Answer:
    """The answer of a worker as the judge's object."""
    steps, compared = (tuple(map(_step, form.get(name, ()))) for name in ("steps", "compared"))
    told = {name: form[name] for name in ("shared", "left_same") if name in form}
    return Answer(state=form["state"], steps=steps, compared=compared, **told)


def _step(form: Message) -> Step:
    fields: dict[str, Any] = {**form, "events": tuple(t.op_from_json(op) for op in form["events"])}
    return Step(**{**fields, **{name: tuple(form[name]) for name in ("destroyed", "aside", "left")}})
