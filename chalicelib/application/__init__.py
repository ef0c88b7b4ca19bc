"""Run operations with ``invoke``, in the context that their handlers receive."""
