// Command clusters follows many clusters with this library's informers, or with bare watches.
package main

import "github.com/rvinformer/informer/bench/race"

func main() {
	race.Main(append(race.Clusters(), race.Fleet("starting-leases", race.FollowLeases))...)
}
