// Package statuspage shows how informers are: on a page for people, in JSON for programs, and in
// health checks for Kubernetes.
//
//	r := registry.New()                      // which metrics show, too
//	r.AddFactory(informers)                  // all informers of a factory, as they come and go
//	r.Add(registry.Labels{...}, anotherOne)  // and single ones
//	http.Handle("/", statuspage.Of(r))
//
// # The page
//
// The first screen has what is wrong first: how many informers are in which condition, in which
// clusters and for which resources, and one row for each informer with its condition, its error and
// since when. It is filtered, sorted and paged by query parameters, so that an address can be sent
// to a colleague. Each informer has a page of its own with everything that its Status says, and
// with its dead letters. The page needs no script, and has none.
//
// The same comes as JSON for ?format=json, and for a request that accepts application/json rather
// than text/html.
//
// # The health checks
//
// /readyz fails while an informer has not synced, and once the process drains (Drain). It does not wait
// for a cluster that cannot be reached for a minute, if another one has synced. /livez fails
// while a watch makes no progress that should: see Page.Grace. /healthz is /livez. They follow the
// conventions of Kubernetes: ?verbose, ?exclude=NAME, a path for each check, and lines like
// "[+]ping ok". Ready and Live are the same for controller-runtime's AddReadyzCheck and
// AddHealthzCheck.
//
// # What it must not tell
//
// Credentials in errors are masked. But the page shows the names of clusters and resources, and of
// objects in errors, dead letters and redeliveries. The page asks for no credentials: serve it where only
// those can reach it that may read this.
package statuspage
