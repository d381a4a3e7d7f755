// Package mirror tries the program mirror as its users run it: the objects of its folder deploy at a
// real kube-apiserver, and several replicas of the program that share two clusters and a
// PostgreSQL, and are killed, paused and stopped by chance.
package mirror
