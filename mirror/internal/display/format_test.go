package display

import (
	"errors"
	"fmt"
	"net/url"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The reason leaves out the URL, so that all resources of a cluster that is down have the same.
func TestReason(t *testing.T) {
	dial := &url.Error{Op: "Get", URL: "http://here/api/v1/pods?limit=500", Err: syscall.ECONNREFUSED}
	require.Equal(t, "connection refused", Reason(dial))
	require.Equal(t, "connection refused", Reason(fmt.Errorf("listing: %w", dial)))
	require.Equal(t, "busy", Reason(errors.New("busy")))
	require.Equal(t, "failed to connect: a: refused, b: refused", Reason(errors.New("failed to connect:\n\ta: refused\n\ta: refused\n\tb: refused")))
	require.Equal(t, "403 Forbidden: pods is forbidden: no",
		Reason(fmt.Errorf("listing: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no")))))
}
