"""Words that turn a statement wrong when one takes the place of the other."""

from __future__ import annotations

MONTHS = (
    "January February March April May June July August September October November December"
).split()
OPPOSITES = {
    "first": "last", "last": "first", "more": "less", "less": "more", "most": "least",
    "least": "most", "largest": "smallest", "smallest": "largest", "highest": "lowest",
    "lowest": "highest", "before": "after", "after": "before", "increased": "decreased",
    "decreased": "increased", "increase": "decrease", "decrease": "increase", "older": "younger",
    "younger": "older", "north": "south", "south": "north", "east": "west", "west": "east",
    "northern": "southern", "southern": "northern", "eastern": "western", "western": "eastern",
    "male": "female", "female": "male", "men": "women", "women": "men", "won": "lost",
    "lost": "won", "all": "none", "always": "never", "never": "always", "higher": "lower",
    "lower": "higher", "above": "below", "below": "above", "father": "mother", "mother": "father",
    "brother": "sister", "sister": "brother", "son": "daughter", "daughter": "son",
    "early": "late", "late": "early", "left": "right", "right": "left", "major": "minor",
    "best": "worst", "worst": "best", "oldest": "youngest", "youngest": "oldest",
    "positive": "negative", "negative": "positive", "reduces": "raises", "reduce": "raise",
    "born": "died", "died": "born", "actor": "painter", "actress": "novelist",
    "singer": "director", "director": "singer", "American": "British", "British": "American",
    "English": "French", "French": "German", "German": "Italian", "Italian": "Spanish",
    "author": "editor", "book": "film", "film": "novel", "novel": "play", "band": "company",
}  # fmt: skip
