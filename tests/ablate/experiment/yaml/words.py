"""Scalars that readers of YAML disagree about, or that users write."""

from __future__ import annotations

WORDS = r"""
    null Null NULL nULL ~ ~~ none None NONE nil N/A na nan NaN inf Inf infinity Infinity true True TRUE tRUE false
    False FALSE fALSE yes Yes YES no No NO on On ON off Off OFF y Y n N t f 0 1 -1 +1 7 42 -0 +0 00 007 010 -010
    +010 08 09 0123 0128 123456789012345678901234567890 9223372036854775808 0o7 0o17 0o0 0o8 0O7 -0o7 +0o7 0o 0x1F
    0xff 0xFF 0X1F 0xg 0x -0x1F +0x1F 0b1 0b101 -0b1 0b2 1_000 1__0 _1 1_ 1_000.5 1_0e3 0x_FF 0x1_F 0o1_7 0_0 0o_7
    0b_1 1,000 0xFFFFFFFFFFFFFFFFFF 1.0 1. .5 0.5 -.5 +.5 -1.5 +1.5 . .. 1.2.3 01.5 00.5 1.e3 1.e-3 .5e3 .5e-3 .5e+3
    1.5e 1e 1e+ e5 1e3 1E3 1e-3 1E-3 1e+3 1.0e-3 1.0e3 1.5E+3 -1e-3 +1e-3 1e05 1e-05 0e0 1e308 1e309 -1e309 1e-400
    1e-323 4.9e-324 .inf .Inf .INF .iNF -.inf -.Inf +.inf +.INF .nan .NaN .NAN .Nan -.nan +.nan .infinity 12:30 1:00
    190:20:30 12:30:45 1:2 12:61 -1:30 1:30.5 20:30 2024-01-01 2024-1-1 2024-01-01T00:00:00Z 2024-13-01 24-01-01
    2001-12-14t21:59:43.10-05:00 2024 2024-01 << = <<< == - -- a-b -a ?a :a a:b a#b a'b it's a"b http://x.org/y C:\x
    a\nb 'on' "on" '1' "1" '' "" 'it''s' "a\tb" "\u263a" "\x41" "\/" "\ud83d\ude42" "\e" "\N" '~' "null" '1e-3' []
    {} [1] {a:1} {"a":1} [a,b] !!str !!int * *a & > | @a `a` %a a% 1% 20m 20GiB 30s 1k 1K 5M 3h 1/2 1e3.5 1e-3x x1 ä
    ü☺ 中文 １２ ١٢ −1 ½ ∞ /pre/ pre/post a.b model.placement $x ${x} (a) a|b a>b a,b a&b a*b a!b _ __ ~a a~ !a 1a 1.a
    a1 1.1.1 1..2 +.e3 e E 1e1e1 +-1 --1 -+1 ++1 + 0. -0. 0.0 -0.0 .0 -.0 +.0 0.0e0 00.0
"""
SCALARS = [
    *WORDS.split(),
    "", "1\u00a0", "\u00a01", "a\u200bb", "a b", "1 2", "on off", "a: b", "a :b", "true x", "? a",
    "2001-12-14 21:59:43", "1 000", "a  b", "a\tb", "1\t", "1\t# note",
]  # fmt: skip
