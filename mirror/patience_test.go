package main

import (
	"errors"
	"fmt"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestPatience(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	forbidden := apierrors.NewForbidden(pods, "", errors.New("no"))
	missing := apierrors.NewNotFound(pods, "")
	refused := &url.Error{Op: "Get", URL: "http://here", Err: syscall.ECONNREFUSED}
	busy := errors.New("busy")

	// A step is a failed try (an error, or nil for a good one), progress (a number), or time that
	// goes by.
	for _, tt := range []struct {
		name  string
		limit time.Duration
		steps []any
		want  string // the end; empty = there is patience left
	}{
		{"nothing happened", time.Minute, nil, ""},
		{"one refusal may be meant for one way of listing", time.Minute, []any{forbidden}, ""},
		{"refused twice", time.Minute, []any{forbidden, forbidden}, "403 Forbidden: pods is forbidden: no"},
		{"refused in two ways", time.Minute, []any{forbidden, missing}, `404 Not Found: pods "" not found`},
		{"refused with an error between", time.Minute, []any{forbidden, busy, forbidden}, "403 Forbidden: pods is forbidden: no"},
		{"all well between two refusals", time.Minute, []any{forbidden, nil, forbidden}, ""},
		{"progress between two refusals", time.Minute, []any{forbidden, 1, forbidden}, ""},
		{"a server that restarts", time.Minute, []any{refused, refused, refused}, ""},
		{"a closed port", time.Minute, []any{refused, refused, refused, refused}, "connection refused"},
		{"no progress yet", time.Minute, []any{30 * time.Second}, ""},
		{"no progress", time.Minute, []any{time.Minute}, "no progress for 1m0s"},
		{"no progress, and why", time.Minute, []any{busy, time.Minute}, "no progress for 1m0s: busy"},
		{"progress in time", time.Minute, []any{30 * time.Second, 1, 40 * time.Second}, ""},
		{"progress that stopped", time.Minute, []any{30 * time.Second, 1, 40 * time.Second, 1, 30 * time.Second}, "no progress for 1m0s"},
		{"for ever", 0, []any{forbidden, forbidden, refused, refused, refused, refused, time.Hour}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now, progress := time.Unix(0, 0), int64(0)
			p := newPatience(tt.limit, now)
			for i, step := range tt.steps {
				switch step := step.(type) {
				case nil:
					p.Failed(nil)
				case error:
					p.Failed(step)
				case int:
					progress = int64(step)
				case time.Duration:
					now = now.Add(step)
				}
				if i < len(tt.steps)-1 {
					require.NoError(t, p.Spent(now, progress), "step %d", i)
				}
			}
			err := p.Spent(now, progress)
			if tt.want == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, tt.want)
			}
		})
	}
}

// The reason leaves out the URL, so that all resources of a cluster that is down have the same.
func TestReason(t *testing.T) {
	dial := &url.Error{Op: "Get", URL: "http://here/api/v1/pods?limit=500", Err: syscall.ECONNREFUSED}
	require.Equal(t, "connection refused", reason(dial))
	require.Equal(t, "connection refused", reason(fmt.Errorf("listing: %w", dial)))
	require.Equal(t, "busy", reason(errors.New("busy")))
	require.Equal(t, "403 Forbidden: pods is forbidden: no",
		reason(fmt.Errorf("listing: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no")))))
}
