"""hvsvc grows running OpenStack servers without rebuilding them, and proves what it did."""
