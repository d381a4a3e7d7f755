// Command clusters follows many clusters with this library's informers: see
// race.ClustersOrder.
package main

import "github.com/rvinformer/informer/bench/race"

func main() { race.ClustersMain() }
