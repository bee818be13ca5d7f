"""Tools that compute what cannot be read off a text: sums, lengths, dates, whether code works.

A tool is a typed function without state; the code that parses its input from a question or a
statement is in the same package. Source: HaluAgent 2.2.
"""
