package keytable_test

import (
	"fmt"
	"math"

	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// Compare says whether an object has changed since its version was stored.
func ExampleTable_Compare() {
	table := keytable.New()
	table.Set("default/web", keytable.Version{ResourceVersion: "17", UID: "u1"}, table.Begin())
	for _, v := range []keytable.Version{
		{ResourceVersion: "17", UID: "u1"},
		{ResourceVersion: "18", UID: "u1"},
		{ResourceVersion: "18", UID: "u2"}, // deleted and created again
	} {
		c := table.Compare("default/web", v)
		fmt.Println("same version:", c.SameVersion, "same object:", c.SameObject)
	}
	fmt.Println("known:", table.Compare("default/db", keytable.Version{ResourceVersion: "5"}).Known)
	// Output:
	// same version: true same object: true
	// same version: false same object: true
	// same version: false same object: false
	// known: false
}

// A generation marks the keys that a list shows. The keys without its mark are gone from the server.
func ExampleTable_UnmarkedFrom() {
	table := keytable.New()
	first := table.Begin()
	table.Set("default/web", keytable.Version{ResourceVersion: "17"}, first)
	table.Set("default/db", keytable.Version{ResourceVersion: "21"}, first)

	second := table.Begin() // the next list shows one of the two
	_, c := table.Show("default/web", keytable.Version{ResourceVersion: "17"}, second, second)
	fmt.Println("unchanged:", c.SameVersion)

	gone, _ := table.UnmarkedFrom(0, second, math.MaxInt)
	for _, key := range gone {
		fmt.Println("gone:", key, table.Delete(key))
	}
	fmt.Println("keys left:", table.Len())
	// Output:
	// unchanged: true
	// gone: default/db true
	// keys left: 1
}
