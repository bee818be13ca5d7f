"""One record of a public file, read field by field: what is wrong names file, line and field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from core.errors import InputError
from core.formats.shown import shown

MOST_SHOWN = 60  # characters of a found value in a message
MOST_NAMES = 200  # characters of the names of the fields that are there
T = TypeVar("T")


@dataclass(frozen=True)
class Record:
    """One object or table line: its fields, and where it lies. `line` counts from 1.

    Where several names are given, the first that the record has is read.
    """

    fields: Mapping[str, object]
    file: str
    line: int

    @property
    def place(self) -> str:
        """File and line, as messages name them."""
        return f"{self.file}, line {self.line}"

    def broken(self, expected: str, found: object = None) -> InputError:
        """The error to raise for this record."""
        tail = "" if found is None else f", found: “{shown(found, MOST_SHOWN)}”"
        return InputError(f"{self.place}: expected {expected}{tail}.")

    def text(self, *names: str) -> str:
        """A text with something other than white space in it."""
        value = self.plain(*names)
        if not value.strip():
            raise self.broken(f"some text in {' or '.join(names)}", value)
        return value

    def plain(self, *names: str) -> str:
        """A text, perhaps empty."""
        return self._whole(self._of_kind(str, "a text", names))

    def spare(self, *names: str) -> str:
        """The first text that is there and not blank; "" where none is or all are null."""
        values = [self.fields.get(name) for name in names]
        said = (one.strip() for one in values if isinstance(one, str) and one.strip())
        return self._whole(next(said, ""))

    def number(self, *names: str) -> float:
        """A number, or a text that is one."""
        value = self._first(names)
        try:
            if isinstance(value, bool) or not isinstance(value, int | float | str):
                raise ValueError
            return float(value)
        except (ValueError, OverflowError):
            raise self.broken(f"a number called {' or '.join(names)}", value) from None

    def flag(self, *names: str) -> bool:
        """A true or false."""
        return self._of_kind(bool, "true or false", names)

    def items(self, *names: str) -> list[object]:
        """A list of whatever it holds."""
        return self._of_kind(list, "a list", names)

    def texts(self, *names: str) -> tuple[str, ...]:
        """A list of texts."""
        found = self.items(*names)
        if not all(isinstance(item, str) for item in found):
            raise self.broken(f"a list of texts called {' or '.join(names)}")
        return tuple(self._whole(item) for item in cast("list[str]", found))

    def records(self, *names: str) -> list[Record]:
        """A list of objects, each a record at the same place."""
        found = self.items(*names)
        if not all(isinstance(item, dict) for item in found):
            raise self.broken(f"a list of objects called {' or '.join(names)}")
        return [Record(item, self.file, self.line) for item in found if isinstance(item, dict)]

    def inner(self, *names: str) -> Record:
        """An object inside, as a record at the same place."""
        return Record(self._of_kind(dict, "an object", names), self.file, self.line)

    def chosen(self, meanings: Mapping[str, T], *names: str) -> T:
        """What the field's word means, in any case; a word that is not listed is an error."""
        word = self.plain(*names)
        if word.strip().lower() not in meanings:
            expected = f"{' or '.join(names)} to be one of {', '.join(meanings)}"
            raise self.broken(expected, word)
        return meanings[word.strip().lower()]

    def _whole(self, text: str) -> str:
        """The text, if it is one: JSON can escape half a character."""
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise self.broken("whole characters", ascii(text[error.start])) from None
        return text

    def _first(self, names: Sequence[str]) -> object:
        return next((self.fields[name] for name in names if name in self.fields), None)

    def _of_kind(self, kind: type[T], called: str, names: Sequence[str]) -> T:
        value = self._first(names)
        if isinstance(value, kind):
            return value
        wanted = f"{called} called {' or '.join(names)}"
        if not any(name in self.fields for name in names):
            others = shown(", ".join(map(str, self.fields)), MOST_NAMES) or "none"
            raise self.broken(f"{wanted} among the fields ({others})")
        raise self.broken(wanted, "null" if value is None else value)
