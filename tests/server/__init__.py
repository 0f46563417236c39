"""Tests against a real SGLang server, and the harness that starts one."""
