"""Attention on the device: vendor kernels, and the backend class that calls them."""
