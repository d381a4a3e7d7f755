package factory_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
)

// The conditions of all kinds of informers tell what fails, before they have synced and after, and
// since when.
func TestConditionsOfAllKindsOfInformers(t *testing.T) {
	for name, test := range map[string]struct {
		fault  informertest.Fault
		reason informer.ConditionReason
	}{
		"forbidden":   {informertest.Fault{Effect: informertest.Status(403)}, informer.ReasonForbidden},
		"unavailable": {informertest.Fault{Effect: informertest.Status(503)}, informer.ReasonServerUnreachable},
		"failing":     {informertest.Fault{Effect: informertest.Status(500)}, informer.ReasonFailing},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server, f *factory.Factory) {
				shared, versions := each(t, f, s, pods)
				objects, err := f.Acquire(pods, factory.InformerOptions{Namespace: "default", InformerType: factory.DynamicInformer}, func() cache.SharedIndexInformer {
					lws, err := informer.NewDynamicListerWatcherFactory(s.Config())
					require.NoError(t, err)
					return objectcache.NewSharedIndexInformer(lws.ForResource("default", pods), nil, 0, nil)
				})
				require.NoError(t, err)
				all := func() (conditions []informer.Condition) {
					for _, status := range []func() factory.Status{shared, versions, objects.Status} {
						conditions = append(conditions, status().Condition)
					}
					return conditions
				}
				for _, c := range all() {
					require.Equal(t, informer.ReasonNotStarted, c.Reason, "%+v", c)
				}
				heal := s.Inject(test.fault)
				began := time.Now()
				f.Start(nil)
				for range 10 {
					time.Sleep(3 * time.Minute)
					for _, c := range all() {
						require.Equal(t, test.reason, c.Reason, "%+v", c)
						require.True(t, began.Equal(c.Since), "%+v", c)
						require.NotEmpty(t, c.Message)
					}
				}
				heal()
				time.Sleep(5 * time.Minute)
				for _, c := range all() {
					require.Equal(t, informer.ReasonCurrent, c.Reason, "%+v", c)
				}

				s.RemoveResource(pods)
				gone := time.Now()
				time.Sleep(20 * time.Minute)
				for _, c := range all() {
					require.Equal(t, informer.ReasonNotFound, c.Reason, "%+v", c)
					require.WithinDuration(t, gone, c.Since, time.Minute, "%+v", c)
				}
				stopped := time.Now()
				ended := f.Stop(shared().Key)
				<-ended
				for _, status := range f.Statuses() {
					require.NotEqual(t, shared().Key, status.Key)
				}
				require.Equal(t, informer.ReasonStopped, shared().Condition.Reason)
				require.WithinDuration(t, stopped, shared().Condition.Since, 2*time.Minute)
			})
		})
	}
}

// What a client-go informer is told is masked in the status, too.
func TestSecretsAreMaskedInTheStatusOfClientGosInformers(t *testing.T) {
	const planted = "hunter2-0123456789abcdef"
	refuse := func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":401,"reason":"Unauthorized","message":"Bearer %s is unknown"}`, planted)
		})
	}
	bubble(t, informertest.Options{Wrap: refuse}, func(t *testing.T, s *informertest.Server, f *factory.Factory) {
		shared, versions := each(t, f, s, pods)
		f.Start(nil)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		result := f.WaitForCacheSyncWithContext(ctx)
		var all strings.Builder
		fmt.Fprintf(&all, "%v\n", result.AsError())
		for _, status := range []factory.Status{shared(), versions()} {
			require.Equal(t, informer.ReasonUnauthorized, status.Condition.Reason)
			require.Contains(t, status.Condition.Message, "xxxxx")
			fmt.Fprintf(&all, "%v\n%+v\n%v\n", status, status.Condition, status.LastError)
		}
		require.NotContains(t, all.String(), planted)
	})
}
