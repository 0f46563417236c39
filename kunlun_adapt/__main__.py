"""`python -m kunlun_adapt`: the command line."""

from kunlun_adapt.cli import main

main()
