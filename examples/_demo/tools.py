"""A travel agency's tools, with every habit that makes tools hard to run: slow, blocking, failing, deaf."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, ClassVar


class Agency:
    """The tools, and the moments at which the outside world answers them.

    The demo decides when the world answers, so that it runs the same way each time.
    """

    def __init__(self) -> None:
        self.railway_answers = asyncio.Event()
        self.restaurant_answers = asyncio.Event()
        self.airline_answers = asyncio.Event()
        self.hotel_asked = asyncio.Event()
        self.restaurant_asked = asyncio.Event()
        self.airline_asked = asyncio.Event()

    @property
    def tools(self) -> dict[str, Callable[..., Any]]:
        """The tools by name, as `ToolSession` takes them."""
        return {
            "weather": self.weather,
            "read_calendar": self.read_calendar,
            "exchange_rate": self.exchange_rate,
            "book_train": self.book_train,
            "book_hotel": self.book_hotel,
            "book_table": self.book_table,
            "order_flowers": self.order_flowers,
            "find_flights": self.find_flights,
        }

    timeouts: ClassVar = {"book_train": 0.3}  # seconds; the others may take as long as they like

    def everyone_answers(self) -> None:
        """Let every tool end that still waits."""
        for event in (self.railway_answers, self.restaurant_answers, self.airline_answers):
            event.set()

    async def weather(self, city: str) -> dict[str, Any]:
        """The good one."""
        await asyncio.sleep(0.02)
        return {"city": city, "celsius": 18}

    def read_calendar(self, day: str) -> str:
        """A plain function that blocks: toolbatch runs it in a thread."""
        time.sleep(0.05)
        return f"{day}: free all day"

    async def exchange_rate(self, to: str) -> float:
        """Fails."""
        raise ConnectionError(f"the rate service has no {to} today")

    async def book_train(self, to: str) -> str:
        """Takes too long, and can't be stopped once the order is out."""
        await deaf_wait(self.railway_answers)
        return f"Train to {to} booked, seat 14A."

    async def book_hotel(self, city: str) -> str:
        """Slow, but stops when it is asked to."""
        self.hotel_asked.set()
        await asyncio.sleep(3600)
        return f"Hotel in {city} booked."

    async def book_table(self, people: int) -> str:
        """Slow, and can't be stopped."""
        self.restaurant_asked.set()
        await deaf_wait(self.restaurant_answers)
        return f"Table for {people} booked."

    async def order_flowers(self, kind: str) -> str:
        """Would be quick, if its turn ever came."""
        return f"{kind} ordered."

    async def find_flights(self, to: str) -> str:
        """Quick for Rome. For Paris the airline takes its time, and the search can't be stopped."""
        if to == "Paris":
            self.airline_asked.set()
            await deaf_wait(self.airline_answers)
        return f"{to}: from 89 euros."


async def deaf_wait(event: asyncio.Event) -> None:
    """Wait for the event and swallow every cancellation, as code with a broad `except` does."""
    while not event.is_set():
        try:
            await event.wait()
        except asyncio.CancelledError:
            continue
