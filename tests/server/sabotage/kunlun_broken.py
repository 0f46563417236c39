"""An implementation module that does not even import."""

raise RuntimeError("sabotaged implementation module was imported")
