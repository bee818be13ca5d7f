"""Tools that work out what a text alone cannot show: lengths, dates, whether code works.

A tool is a typed function without state; reading the question in words is the caller's part.
Source: HaluAgent 2.2.
"""
