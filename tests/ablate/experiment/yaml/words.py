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
    oN oFF YeS trUE TruE NUll nuLL .nAn ..inf -.INF nan. INF -inf 0x0 0x00 0o00 0O0 00e0 00x1 0xdeadbeef 0x1.8 0x1p3
    0x-1 0o-7 0o7.5 08.5 09e1 0b 0b_ 0B1 1__000 _1_ 1_e3 1e1_0 1_.5 1._5 -1_000 +1_000 -.5e-3 +.5E+3 .5E3 5.e3 -5. 5.e
    1.5.5 1e5e5 1e99999 1.7976931348623157e308 1.7976931348623159e308 5e-324 2e-324 9007199254740993
    9007199254740993.0 0.1000000000000000055511151231257827 12:30:45.5 1:2:3:4 -190:20:30 0:0 00:00 :: a::b on:off
    20240101 0000-00-00 9999-12-31 2024-02-30 2024-W01 2024-01-01T12:00 # #a a# ! !x !!null &a "a#b" '#' ': '
    "\0" "\u00e9" "\U0001f642" '"' "'" '''' '010' "0o7" '12:30' '2024-01-01' '!!int' 🙂 naïve ﬁ １.５ 1² Ⅳ 1'000
    1.000,5 1,5 5€ 1+2 -~ ~1 +null -true [[]] [{}] [1,on,010] {on:off} [ ] { } , --- ... \ \n a\ "
"""
SCALARS = [
    *WORDS.split(),
    "", "1\u00a0", "\u00a01", "a\u200bb", "a b", "1 2", "on off", "a: b", "a :b", "true x", "? a",
    "2001-12-14 21:59:43", "1 000", "a  b", "a\tb", "1\t", "1\t# note",
    "1" * 300, "1" * 400, "-" + "1" * 400, "0" * 60 + "1", "0." + "1" * 400, "0." + "0" * 400 + "1", "1" * 400 + ".5",
    "0x" + "f" * 300, "0o" + "7" * 400, "2024-01-01 12:00:00 +01:00", "a b c", "~ ~", "null null", "a : b", "!!int 1",
    "{a: 1, b: 2}", "{on: off}", "[1, on, 010]", "'on' ", "# a",
]  # fmt: skip
