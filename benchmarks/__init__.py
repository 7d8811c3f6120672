"""How fast toolbatch is: each goal of DESIGN.md, "Speed", as a ratio of two sides that run in turns in one process.

python -m benchmarks                  all of them; name some to run only those
python -m benchmarks --write          and write their part of benchmarks/RESULTS.md
python -m benchmarks.peers [--write]  other frameworks, in an environment of their own: `make bench-peers`
"""
