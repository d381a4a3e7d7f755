// Command fleet follows a fleet of clusters in one process, or reads the same bytes: see race.FleetOrder.
package main

import "github.com/rvinformer/informer/bench/race"

func main() { race.FleetMain() }
