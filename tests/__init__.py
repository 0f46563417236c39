"""Tests, laid out like `kunlun_adapt/`."""
