package main

import (
	_ "github.com/rvinformer/informer"
	_ "github.com/rvinformer/informer/e2e/cluster"
	_ "gonum.org/v1/plot/plotter"
	_ "gonum.org/v1/plot/vg/vgsvg"
)

func main() {}
