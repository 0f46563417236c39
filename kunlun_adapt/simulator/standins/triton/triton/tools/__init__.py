"""kunlun_adapt simulator stand-in for triton.tools."""
