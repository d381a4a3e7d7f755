package keytable_test

import "unsafe"

// borrow is b as a string that changes with it.
func borrow(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
