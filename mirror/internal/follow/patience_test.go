package follow

import (
	"errors"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestPatience(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no"))
	refused := &url.Error{Op: "Get", URL: "http://here", Err: syscall.ECONNREFUSED}
	for _, tt := range []struct {
		name             string
		limit            time.Duration
		err              error
		failing, without time.Duration // for so long
		want             string        // empty = there is patience left
	}{
		{"nothing happened", time.Minute, nil, 0, time.Second, ""},
		{"one refusal may be meant for one way of listing", time.Minute, forbidden, time.Second, time.Second, ""},
		{"refused for some time", time.Minute, forbidden, believed, believed, "403 Forbidden: pods is forbidden: no"},
		{"a server that restarts", time.Minute, refused, 3 * time.Second, 36 * time.Second, ""},
		{"a closed port", time.Minute, refused, believed, believed, "connection refused"},
		{"no progress yet", time.Minute, nil, 0, 30 * time.Second, ""},
		{"no progress", time.Minute, nil, 0, time.Minute, "no progress for 1m0s"},
		{"no progress, and why", time.Minute, errors.New("busy"), time.Second, time.Minute, "no progress for 1m0s: busy"},
		{"for ever", 0, forbidden, time.Hour, time.Hour, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Unix(10000, 0)
			err := Patience(tt.limit).Spent(tt.err, now.Add(-tt.failing), now.Add(-tt.without), now)
			if tt.want == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, tt.want)
			}
		})
	}
}
