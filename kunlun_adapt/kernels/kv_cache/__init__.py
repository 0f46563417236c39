"""Key/value cache on the device: writes, pools and the page allocator."""
