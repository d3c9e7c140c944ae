"""Generated stubs of the package `hvsvc.v1`; made by `make proto`, never edited by hand."""
