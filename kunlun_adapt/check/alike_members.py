"""Which member of upstream's platform may be another one under a new name, by its words.

The words that names of a platform share are mostly their frame, such as `supports_` or `get_…_cls`:
only what stands inside it tells what a member is about.
"""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.keys import closest_slip
from kunlun_adapt.check.wording import nearest

FRAME = frozenset(["can", "class", "cls", "get", "has", "is", "set", "support", "supports"])

LONG = 5
"""From this many letters on a word may be written with a slip; shorter ones are acronyms."""


def like_member(name: str, choices: Iterable[str], key: str = "") -> str | None:
    """Return the choice that says what a name says, or None where none does.

    All words of the shorter name are in the longer one, and they are half of it at least. A word
    of the key counts for one that it stands for: `kv_pool.dsa` may have been called nsa.
    """
    return nearest(name, [c for c in choices if _says(name, c, key)], cutoff=0)


def shares_a_word(name: str, choice: str) -> bool:
    """Tell whether two names have a word in common that says what they are about."""
    return bool(set(words(name)) & set(words(choice)))


def words(name: str) -> list[str]:
    """Return the words of a name that say what it is about, without its frame."""
    return [w for w in name.lower().replace(".", "_").split("_") if w and w not in FRAME]


def _says(name: str, choice: str, key: str) -> bool:
    lost, found = words(name), words(choice)
    if not lost or not found:
        return False
    own = words(key.rpartition(".")[2])
    left = list(found)
    same = 0
    for word in lost:
        twin = word if word in left else _meant(word, left)
        if twin is not None:
            left.remove(twin)
            same += 1
    # What the key is called stands for the one word of the name that is called otherwise.
    renamed = len(lost) == len(found) == same + 1 and same > 0 and left[0] in own
    same += renamed
    return same == min(len(lost), len(found)) and same * 2 >= max(len(lost), len(found))


def _meant(word: str, choices: list[str]) -> str | None:
    """Return the word that a slip would make of another; digits are no slip."""
    long = [c for c in choices if len(c) >= LONG and _digits(c) == _digits(word)]
    return closest_slip(word, long) if len(word) >= LONG else None


def _digits(word: str) -> str:
    return "".join(c for c in word if c.isdigit())
