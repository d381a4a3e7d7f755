// The versions that .ci/next.work has beyond those of the library's modules. It has no packages.
module next

go 1.27.3

require (
	k8s.io/client-go v0.38.0-beta.0
	sigs.k8s.io/controller-runtime v0.25.2
)
