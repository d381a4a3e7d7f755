// Package registry holds the informers of a process for all that show them, so that they are told
// of each once:
//
//	r := registry.New()
//	r.AddFactory(informers) // as they come and go
//	r.Add(registry.Labels{Resource: "pods", Version: "v1"}, anotherOne)
//	http.Handle("/", statuspage.Of(r))
//	prometheus.MustRegister(metrics.Of(r))
package registry
