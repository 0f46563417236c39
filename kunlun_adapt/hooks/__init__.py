"""Implementations that change upstream code from outside; each takes one ``call`` argument."""
