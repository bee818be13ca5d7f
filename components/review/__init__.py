"""The screens on which people review, correct and adjudicate."""
