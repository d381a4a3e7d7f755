// Package repository tests the repository itself: the layers of its packages, and the links, code,
// manifests and names of its pages.
package repository
