package controllerruntime

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/rvinformer/informer"
)

// checkClient says what a client has that lists and watches cannot use.
func checkClient(client *http.Client) error {
	switch {
	case client == nil:
		return nil
	case client.Jar != nil:
		return errors.New("controllerruntime: cache.Options.HTTPClient has a Jar, which lists and watches do not use")
	case client.CheckRedirect != nil:
		return errors.New("controllerruntime: cache.Options.HTTPClient has a CheckRedirect, which lists and watches do not use")
	default:
		return nil
	}
}

// mapperFor returns the RESTMapper of the server of config. Client is as for listerWatchersFor.
func mapperFor(config *rest.Config, client *http.Client) (meta.RESTMapper, error) {
	if client == nil {
		var err error
		if client, err = rest.HTTPClientFor(config); err != nil {
			return nil, err
		}
	}
	return apiutil.NewDynamicRESTMapper(config, client)
}

// listerWatchersFor returns the ListerWatchers of the server of config. They use the transport of
// client; a nil client is for connections of their own.
func listerWatchersFor(config *rest.Config, client *http.Client) (informer.DynamicListerWatcherFactory, error) {
	if client == nil {
		return informer.NewDynamicListerWatcherFactory(config)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("controllerruntime: URL of the server: %w", err)
	}
	// The transport authenticates. A rest.Config refuses credentials beside it.
	through := &rest.Config{
		Host:               base.String(),
		APIPath:            config.APIPath,
		ContentConfig:      config.ContentConfig,
		UserAgent:          config.UserAgent,
		DisableCompression: config.DisableCompression,
		QPS:                config.QPS,
		Burst:              config.Burst,
		RateLimiter:        config.RateLimiter,
		WarningHandler:     config.WarningHandler,
		Timeout:            client.Timeout,
		Transport:          client.Transport,
	}
	through.WarningHandlerWithContext = config.WarningHandlerWithContext
	if through.Transport == nil {
		through.Transport = http.DefaultTransport
	}
	return informer.NewDynamicListerWatcherFactory(through)
}
