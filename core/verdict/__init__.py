"""From the judge's text to a label with a probability (CEDA 3.4, 3.5)."""
