"""Files of all kinds, made in code, and what is read in them."""
