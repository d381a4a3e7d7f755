package status_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
)

func TestErrorsSayWhatAndWhere(t *testing.T) {
	cause := errors.New("cause")
	for _, c := range []struct {
		err  error
		want string
	}{
		{&informer.ItemError{Index: 3, Key: "a/1", Err: cause}, `list item 3 "a/1" skipped: cause`},
		{&informer.ItemError{Index: 3, Err: cause}, `list item 3 skipped: cause`},
		{&informer.ItemError{Index: 3, Watch: true, Key: "a/1", Err: cause}, `watch event 3 "a/1" skipped: cause`},
		{&informer.StoreError{Op: "Add", Key: "a/1", Err: cause}, `store: Add "a/1": cause`},
		{&informer.StoreError{Op: "Replace", Err: cause}, `store: Replace: cause`},
		{&informer.ProcessError{Key: "a/1", Err: cause}, `processing "a/1": cause`},
		{&informer.ProcessError{Key: "a/1", Err: &informer.PanicError{Value: "oops"}}, `processing "a/1": panic: oops`},
		{&informer.StallError{Silence: time.Minute}, `stalled: nothing received for 1m0s`},
		{&informer.CredentialError{Attempts: 3, Err: cause}, `no credentials: exec plugin, attempt 3: cause`},
	} {
		require.EqualError(t, c.err, c.want)
	}
	for _, err := range []error{&informer.ItemError{Err: cause}, &informer.StoreError{Err: cause}, &informer.ProcessError{Err: cause}, &informer.CredentialError{Err: cause}} {
		require.ErrorIs(t, err, cause)
	}
}
