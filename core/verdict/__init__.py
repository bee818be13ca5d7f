"""The classifier that turns the judge's text into a label and a probability (CEDA 3.4, 3.5)."""
