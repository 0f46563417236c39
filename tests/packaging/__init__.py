"""Tests of the built wheel, installed where nothing else is."""
