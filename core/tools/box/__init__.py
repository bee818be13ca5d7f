"""The toolbox: a tool is one file here that holds its input, its work, its words and two examples.

`core/tools/toolbox.py` finds them by themselves; a file's name is nothing but a file's name.
"""
