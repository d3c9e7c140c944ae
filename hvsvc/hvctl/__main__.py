"""`python -m hvsvc.hvctl`."""

from hvsvc.hvctl.main import main

main()
