"""Making the plan take effect in a process of SGLang, and saying what took effect.

This package's door is `kunlun_adapt.plugin`; implementations use `runtime.operators.operator`.
Nothing is imported here, so that a process without a device pays for nothing.
"""
