"""Tools that work out what a text alone cannot show: lengths, dates, whether code works.

A tool is a typed function without state; what reads its input out of a question or a statement lies
beside it. Source: HaluAgent 2.2.
"""
