"""From sources to passages: segment, index, retrieve, and check quotes against the text."""
