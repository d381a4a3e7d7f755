package registry

// Labels tell informers apart. All are optional. Their number is bounded by the number of
// informers: they never have the name of an object.
type Labels struct {
	// Cluster is empty where there is only one.
	Cluster string
	// Group, Version and Resource are those of the API; Group is empty for the core group.
	Group    string
	Version  string
	Resource string
	// Informer tells apart what the other labels do not, for instance informers of several
	// namespaces.
	Informer string
}
