"""For tests of programs that use dq."""
