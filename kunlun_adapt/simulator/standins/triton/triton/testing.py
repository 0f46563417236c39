"""kunlun_adapt simulator stand-in for triton.testing."""

from __future__ import annotations

from triton._standin import Placeholder

do_bench = Placeholder("triton.testing.do_bench")
do_bench_cudagraph = Placeholder("triton.testing.do_bench_cudagraph")
perf_report = Placeholder("triton.testing.perf_report")
Benchmark = Placeholder("triton.testing.Benchmark")
