package server

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// setOptions sets the parameters of a request. It does so as package queryparams of apimachinery
// does, but that finds the fields by reflection, and after an outage all informers make their
// requests at the same time.
func setOptions(request *rest.Request, opts *metav1.ListOptions) {
	set := func(name, value string) {
		if value != "" {
			request.Param(name, value)
		}
	}
	number := func(name string, value int64) { set(name, strconv.FormatInt(value, 10)) }
	set("labelSelector", opts.LabelSelector)
	set("fieldSelector", opts.FieldSelector)
	if opts.Watch {
		set("watch", "true")
	}
	if opts.AllowWatchBookmarks {
		set("allowWatchBookmarks", "true")
	}
	set("resourceVersion", opts.ResourceVersion)
	set("resourceVersionMatch", string(opts.ResourceVersionMatch))
	if opts.TimeoutSeconds != nil {
		number("timeoutSeconds", *opts.TimeoutSeconds)
	}
	if opts.Limit != 0 {
		number("limit", opts.Limit)
	}
	set("continue", opts.Continue)
	if opts.SendInitialEvents != nil {
		set("sendInitialEvents", strconv.FormatBool(*opts.SendInitialEvents))
	}
	set("shardSelector", opts.ShardSelector)
}
